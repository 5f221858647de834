package io.s3commit.spark;

import com.fasterxml.jackson.annotation.JsonInclude;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;

/** Who writes, for the people who look at the job later; an empty text is left out. */
@JsonInclude(JsonInclude.Include.NON_EMPTY)
record Writer(String applicationId, String application, String user, String host, String airflow) {
  // As Airflow exports them to the process of each task.
  private static final String[] AIRFLOW = {
    "AIRFLOW_CTX_DAG_ID",
    "AIRFLOW_CTX_DAG_RUN_ID",
    "AIRFLOW_CTX_TASK_ID",
    "AIRFLOW_CTX_MAP_INDEX",
    "AIRFLOW_CTX_TRY_NUMBER"
  };

  Writer {
    applicationId = cut(applicationId);
    application = cut(application);
    user = cut(user);
    host = cut(host);
    airflow = cut(airflow);
  }

  /** The running application, and its Airflow run. */
  static Writer running() {
    SparkContext context = SparkContext.getOrCreate();
    return of(context.getConf(), context.sparkUser(), System.getenv());
  }

  static Writer of(SparkConf conf, String user, Map<String, String> environment) {
    String run =
        Stream.of(AIRFLOW)
            .map(environment::get)
            .filter(Objects::nonNull)
            .collect(Collectors.joining("/"));
    return new Writer(
        conf.get("spark.app.id", ""), conf.get("spark.app.name", ""), user, localHost(), run);
  }

  private static String localHost() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException nameless) {
      return "";
    }
  }

  /** What readers take of a text: so much, and nothing that UTF-8 can't carry. */
  private static String cut(String text) {
    int[] some = text.codePoints().limit(Limits.WHO_CHARACTERS).toArray();
    byte[] body = new String(some, 0, some.length).getBytes(StandardCharsets.UTF_8);
    return new String(body, StandardCharsets.UTF_8);
  }
}
