-- What tables say of themselves: metadata tables, DESCRIBE and SHOW.

CREATE TABLE db.t (id bigint NOT NULL COMMENT 'the key', part string, v double) USING iceberg PARTITIONED BY (part, bucket(1, id))
TBLPROPERTIES ('format-version' = '2', 'purpose' = 'trial', 'write.delete.mode' = 'merge-on-read');

INSERT INTO db.t VALUES (1, 'a', 1.5), (4, 'a', 4.5), (2, 'b', 2.5);

INSERT INTO db.t VALUES (3, 'a', NULL);

DELETE FROM db.t WHERE id = 1;

SELECT snapshot_id, parent_id, operation FROM db.t.snapshots ORDER BY committed_at;

SELECT snapshot_id, parent_id, is_current_ancestor FROM db.t.history ORDER BY made_current_at;

-- nullability differs: what is always there is required here, and optional there
SELECT content, file_format, spec_id, record_count, partition.part, value_counts, null_value_counts, lower_bounds, upper_bounds, equality_ids
FROM db.t.files WHERE content = 0 ORDER BY content, partition.part, record_count;

SELECT readable_metrics.id.lower_bound, readable_metrics.v.null_value_count FROM db.t.data_files ORDER BY 1;

-- nullability differs: what is always there is required here, and optional there
SELECT content, record_count FROM db.t.delete_files;

-- nullability differs: what is always there is required here, and optional there
SELECT status, snapshot_id, sequence_number, file_sequence_number, data_file.content FROM db.t.entries
ORDER BY sequence_number, status;

SELECT content, partition_spec_id, added_snapshot_id, added_data_files_count, existing_data_files_count,
  deleted_data_files_count, added_delete_files_count FROM db.t.manifests;

SELECT partition.part, spec_id, record_count, file_count, position_delete_record_count, position_delete_file_count,
  equality_delete_record_count, last_updated_snapshot_id FROM db.t.partitions ORDER BY 1, 3;

SELECT count(*) FROM db.t.all_data_files;

SELECT count(*) FROM db.t.all_manifests;

SELECT latest_snapshot_id, latest_schema_id, latest_sequence_number FROM db.t.metadata_log_entries ORDER BY timestamp;

SELECT name, type, snapshot_id FROM db.t.refs;

SELECT pos, spec_id FROM db.t.position_deletes;

SELECT count(*) FROM db.t.files VERSION AS OF {snapshot db.t 0};

DESCRIBE TABLE db.t;

-- answer differs: Java names the owner, statistics and metadata columns, too
DESCRIBE EXTENDED db.t;

DESCRIBE db.t.snapshots;

-- answer differs: by the compression that Java stores when it creates a table
SHOW TBLPROPERTIES db.t;

SHOW TBLPROPERTIES db.t ('purpose');

SHOW COLUMNS IN db.t;

-- only here: Spark knows no partitions of tables of Iceberg's
SHOW PARTITIONS db.t;

-- answer differs: Java lists the current snapshot among the properties, with which the statement cannot be given
SHOW CREATE TABLE db.t;

SHOW TABLES IN db LIKE 't*';

SHOW TABLES IN db LIKE 'x*';

SHOW NAMESPACES IN {lake};

-- answer differs: Java names the owner and the location
DESCRIBE NAMESPACE db;

ALTER NAMESPACE db SET PROPERTIES ('purpose' = 'trial', 'a' = 'b');

-- answer differs: Java names the owner and the location, and all properties in one row
DESCRIBE NAMESPACE EXTENDED db;

CREATE TABLE db.nested (m map<string, int> NOT NULL COMMENT 'a map', st struct<a: int COMMENT 'inner', b: struct<c: string>>, l array<decimal(9,2)>);
-- answer differs: Java lists the current snapshot among the properties, with which the statement cannot be given
SHOW CREATE TABLE db.nested;
