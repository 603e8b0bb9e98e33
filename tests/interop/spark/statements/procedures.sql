-- Procedures of maintenance and of snapshots.

CREATE TABLE db.t (id bigint, part string) USING iceberg TBLPROPERTIES ('format-version' = '2');

INSERT INTO db.t VALUES (1, 'a');

INSERT INTO db.t VALUES (2, 'b');

INSERT INTO db.t VALUES (3, 'c');

CALL {lake}.system.rollback_to_snapshot('db.t', {snapshot db.t 1});

CALL {lake}.system.set_current_snapshot(table => 'db.t', snapshot_id => {snapshot db.t 2});

CALL {lake}.system.rollback_to_timestamp(table => 'db.t', timestamp => TIMESTAMP '{time db.t 1}');

-- refused
CALL {lake}.system.rollback_to_snapshot('db.t', {snapshot db.t 2});

CALL {lake}.system.cherrypick_snapshot('db.t', {snapshot db.t 2});

ALTER TABLE db.t CREATE TAG old AS OF VERSION {snapshot db.t 0};

CALL {lake}.system.set_current_snapshot(table => 'db.t', ref => 'old');

CALL {lake}.system.set_current_snapshot('db.t', {snapshot db.t 2});

ALTER TABLE db.t SET TBLPROPERTIES ('write.wap.enabled' = 'true');

SET spark.wap.id = trial-1;

INSERT INTO db.t VALUES (4, 'staged');

RESET spark.wap.id;

SELECT * FROM db.t ORDER BY id;

CALL {lake}.system.publish_changes(table => 'db.t', wap_id => 'trial-1');

SELECT * FROM db.t ORDER BY id;

ALTER TABLE db.t CREATE BRANCH ahead;

INSERT INTO db.t.branch_ahead VALUES (5, 'ahead');

CALL {lake}.system.fast_forward('db.t', 'main', 'ahead');

SELECT * FROM db.t ORDER BY id;

-- masked: timestamp
CALL {lake}.system.ancestors_of('db.t');

-- masked: rewritten_bytes_count
CALL {lake}.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'));

-- masked: rewritten_bytes_count
CALL {lake}.system.rewrite_data_files(table => 'db.t', strategy => 'sort', sort_order => 'part DESC NULLS LAST', where => 'id > 1', options => map('rewrite-all', 'true'));

-- masked: rewritten_bytes_count
CALL {lake}.system.rewrite_data_files(table => 'db.t', strategy => 'sort', sort_order => 'zorder(id, part)', options => map('rewrite-all', 'true'));

CALL {lake}.system.rewrite_manifests('db.t');

ALTER TABLE db.t SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read');

INSERT INTO db.t SELECT id, 'many' FROM range(10, 20);

DELETE FROM db.t WHERE id = 12;

DELETE FROM db.t WHERE id = 13;

-- answer differs: Java has merged the deletes of the data file when it wrote the second
CALL {lake}.system.rewrite_position_delete_files(table => 'db.t', options => map('rewrite-all', 'true'));

CALL {lake}.system.compute_table_stats(table => 'db.t', columns => array('id'));

-- refused
CALL {lake}.system.compute_partition_stats('db.t');

CREATE TABLE db.parted USING iceberg PARTITIONED BY (part) AS SELECT * FROM db.t;

-- masked: partition_statistics_file
CALL {lake}.system.compute_partition_stats('db.parted');

CALL {lake}.system.create_changelog_view(table => 'db.t', changelog_view => 'changes_of_t', options => map('start-snapshot-id', '{snapshot db.t 0}', 'end-snapshot-id', '{snapshot db.t 2}'));

-- nullability differs: what is always there is required here, and optional there
SELECT * FROM changes_of_t ORDER BY id;

DROP VIEW changes_of_t;

-- masked: deleted_manifest_files_count; how entries are spread over manifests is each writer's own
CALL {lake}.system.expire_snapshots(table => 'db.t', older_than => TIMESTAMP '{time db.t -1}', retain_last => 1);

CALL {lake}.system.remove_orphan_files(table => 'db.t', dry_run => true);

SELECT * FROM db.t ORDER BY id;

CREATE TABLE db.added (id bigint, part string) USING iceberg;

-- masked: changed_partition_count; Java gives none
CALL {lake}.system.add_files(table => 'db.added', source_table => '`parquet`.`{files}`');

SELECT * FROM db.added ORDER BY id;

CREATE TABLE db.added_by_part (id bigint, part string) USING iceberg PARTITIONED BY (part);

-- masked: changed_partition_count; Java gives none for some
CALL {lake}.system.add_files(table => 'db.added_by_part', source_table => '`parquet`.`{folders}`', partition_filter => map('part', 'x'));

-- masked: changed_partition_count; Java gives none for some
CALL {lake}.system.add_files('db.added_by_part', '`parquet`.`{folders}`', map('part', 'y'), true);

SELECT * FROM db.added_by_part ORDER BY id;

SELECT * FROM db.added_by_part WHERE part = 'y';

-- refused
CALL {lake}.system.add_files('db.added', '`parquet`.`{folders}`');

CREATE TABLE spark_catalog.default.{lake}_own USING parquet PARTITIONED BY (part) LOCATION '{warehouse}/own' AS
SELECT id, concat('p/', id) AS part FROM range(3);

CALL {lake}.system.snapshot(source_table => 'spark_catalog.default.{lake}_own', table => 'db.shot', properties => map('purpose', 'trial'));

SELECT * FROM db.shot WHERE part > 'p/0' ORDER BY id;

DELETE FROM db.shot WHERE id = 2;

SELECT * FROM db.shot ORDER BY id;

CREATE TABLE db.taken (id bigint, part string) USING iceberg PARTITIONED BY (part);

-- masked: changed_partition_count; Java gives none for some
CALL {lake}.system.add_files(table => 'db.taken', source_table => 'spark_catalog.default.{lake}_own');

SELECT * FROM db.taken ORDER BY id;

DROP TABLE spark_catalog.default.{lake}_own;

CALL {lake}.system.rewrite_manifests(table => 'db.taken', sort_by => array('part'));

CALL {lake}.system.register_table(table => 'db.again', metadata_file => '{metadata db.added}');

SELECT * FROM db.again ORDER BY id;

-- refused
CALL {lake}.system.nothing('db.t');

-- refused
CALL {lake}.system.rollback_to_snapshot('db.t');
