package io.s3commit.spark;

import java.lang.reflect.InvocationTargetException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.commons.lang3.reflect.MethodUtils;
import org.apache.hadoop.fs.FileSystem;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether a pipeline commits what is written to a bucket: one request for the bucket's
 * notifications, before a job writes gigabytes for nobody.
 *
 * <p>A bucket that sends its events to EventBridge may have a pipeline there, whose rules a writer
 * does not see: that is taken for one.
 *
 * <p>S3A gives its client of AWS's SDK, of one generation or the other, so all is called by name.
 */
final class Pipeline {
  private static final Logger LOG = LoggerFactory.getLogger(Pipeline.class);
  private static final String REQUESTS = "/_request.json"; // the suffix that the pipeline listens for
  private static final String REQUEST_2 =
      "software.amazon.awssdk.services.s3.model.GetBucketNotificationConfigurationRequest";
  private static final int NOT_FOUND = 404;
  private static final Set<String> SEEN = ConcurrentHashMap.newKeySet();

  private Pipeline() {}

  /**
   * Raise {@link CommitException} if the bucket has no pipeline, or does not exist. Without the right
   * to ask, the job continues: its wait for the result has an end too.
   */
  static void check(FileSystem fs, String bucket) throws CommitException {
    if (SEEN.contains(bucket)) {
      return;
    }
    try {
      if (!has(fs, bucket)) {
        throw new CommitException(
            "NO_PIPELINE",
            "bucket " + bucket + " has no s3commit pipeline, so this job would never commit."
                + " Deploy s3commit for it, or " + Setting.LEAVE_OUT);
      }
      SEEN.add(bucket);
    } catch (InvocationTargetException answered) {
      Throwable cause = answered.getCause();
      if (status(cause) == NOT_FOUND) {
        throw new CommitException(
            "NO_BUCKET", "bucket " + bucket + " does not exist. Nothing was written.", cause);
      }
      LOG.debug("the notifications of bucket {} can't be read", bucket, cause);
    } catch (ReflectiveOperationException | RuntimeException unknown) {
      LOG.debug("this S3A has no call for a bucket's notifications", unknown);
    }
  }

  private static boolean has(FileSystem fs, String bucket) throws ReflectiveOperationException {
    try {
      Object client = call(call(fs, "getS3AInternals"), "getAmazonS3Client", "notifications");
      return inSecondGeneration(client, bucket);
    } catch (NoSuchMethodException older) {
      Object client = call(fs, "getAmazonS3ClientForTesting", "notifications");
      return inFirstGeneration(client, bucket);
    }
  }

  private static boolean inSecondGeneration(Object client, String bucket)
      throws ReflectiveOperationException {
    Class<?> type = Class.forName(REQUEST_2, true, client.getClass().getClassLoader());
    Object builder = call(MethodUtils.invokeStaticMethod(type, "builder"), "bucket", bucket);
    Object answer = call(client, "getBucketNotificationConfiguration", call(builder, "build"));
    for (Object queue : (List<?>) call(answer, "queueConfigurations")) {
      if (listens(call(call(call(queue, "filter"), "key"), "filterRules"), "value")) {
        return true;
      }
    }
    return call(answer, "eventBridgeConfiguration") != null;
  }

  private static boolean inFirstGeneration(Object client, String bucket)
      throws ReflectiveOperationException {
    Object answer = call(client, "getBucketNotificationConfiguration", bucket);
    for (Object one : ((Map<?, ?>) call(answer, "getConfigurations")).values()) {
      boolean isQueues = one.getClass().getSimpleName().equals("QueueConfiguration");
      Object key = isQueues ? call(call(one, "getFilter"), "getS3KeyFilter") : null;
      if (listens(call(key, "getFilterRules"), "getValue")) {
        return true;
      }
    }
    return call(answer, "getEventBridgeConfiguration") != null;
  }

  private static boolean listens(Object rules, String value) throws ReflectiveOperationException {
    if (rules != null) {
      for (Object rule : (Collection<?>) rules) {
        if (REQUESTS.equals(call(rule, value))) {
          return true;
        }
      }
    }
    return false;
  }

  /** Call the method, whose class need not be public; null of null. */
  private static Object call(Object object, String method, Object... arguments)
      throws ReflectiveOperationException {
    return object == null ? null : MethodUtils.invokeMethod(object, true, method, arguments);
  }

  /** The HTTP status of an answer of S3, in either generation; 0 if there was none. */
  private static int status(Throwable failed) {
    for (String method : new String[] {"statusCode", "getStatusCode"}) {
      try {
        return (Integer) call(failed, method);
      } catch (ReflectiveOperationException another) {
        LOG.trace("not that generation", another);
      }
    }
    return 0;
  }
}
