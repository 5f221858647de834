package io.s3commit.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;

/** Who writes, for the people who look at the job later; an empty text is not said. */
record Who(String applicationId, String application, String user, String host, String airflow) {
  // As Airflow exports them to the process of each task.
  private static final String[] AIRFLOW = {
    "AIRFLOW_CTX_DAG_ID",
    "AIRFLOW_CTX_DAG_RUN_ID",
    "AIRFLOW_CTX_TASK_ID",
    "AIRFLOW_CTX_MAP_INDEX",
    "AIRFLOW_CTX_TRY_NUMBER"
  };

  /** The running application, and its Airflow run. */
  static Who running() {
    SparkContext context = SparkContext.getOrCreate();
    return of(context.getConf(), context.sparkUser(), System.getenv());
  }

  static Who of(SparkConf conf, String user, Map<String, String> environment) {
    String run =
        Stream.of(AIRFLOW)
            .map(environment::get)
            .filter(Objects::nonNull)
            .collect(Collectors.joining("/"));
    return new Who(conf.get("spark.app.id", ""), conf.get("spark.app.name", ""), user, localHost(), run);
  }

  private static String localHost() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException nameless) {
      return "";
    }
  }

  void put(ObjectNode node) {
    put(node, "applicationId", applicationId);
    put(node, "application", application);
    put(node, "user", user);
    put(node, "host", host);
    put(node, "airflow", airflow);
  }

  /** Cut, and without what UTF-8 can't carry: no reader would take it. */
  private static void put(ObjectNode node, String name, String text) {
    if (!text.isEmpty()) {
      int[] some = text.codePoints().limit(Limits.WHO_CHARACTERS).toArray();
      byte[] body = new String(some, 0, some.length).getBytes(StandardCharsets.UTF_8);
      node.put(name, new String(body, StandardCharsets.UTF_8));
    }
  }
}
