"""HDFS for Icefield: by its own protocol without a JVM, and over WebHDFS."""
