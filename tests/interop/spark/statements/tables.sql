-- Tables and namespaces come, are described, and go.

CREATE NAMESPACE db.inner WITH DBPROPERTIES ('purpose' = 'trial');

SHOW NAMESPACES IN db;

CREATE TABLE db.kinds (
  id bigint NOT NULL COMMENT 'the key', yes boolean, small int, single float, real double, price decimal(9, 2),
  day date, at timestamp_ntz, seen timestamp, name string, raw binary, tags array<string>, places map<string, double>,
  home struct<city: string, zip: int>
) USING iceberg COMMENT 'one column of each type' TBLPROPERTIES ('format-version' = '2', 'purpose' = 'trial');

INSERT INTO db.kinds VALUES (
  1, true, 2, float(1.5), 2.5D, 3.25, DATE '2024-02-29', TIMESTAMP_NTZ '2024-02-29 12:30:00.123456',
  TIMESTAMP '2024-02-29 12:30:00.654321', 'ä', X'00ff', array('a', NULL), map('x', 1.0D), named_struct('city', 'Oslo', 'zip', 150)
);

INSERT INTO db.kinds (id) VALUES (2);

SELECT * FROM db.kinds ORDER BY id;

DESCRIBE db.kinds;

-- refused
CREATE TABLE db.parts (id bigint, day date) USING iceberg PARTITIONED BY (years(day), days(day));

CREATE TABLE db.parts (id bigint, kind string, ts timestamp, day date, num int, at timestamp_ntz, due date)
USING iceberg
PARTITIONED BY (kind, bucket(4, id), truncate(2, kind), years(due), months(day), days(at), hours(ts), truncate(10, num));

INSERT INTO db.parts VALUES
  (1, 'abc', TIMESTAMP '2024-01-31 23:30:00', DATE '2024-01-31', 15, TIMESTAMP_NTZ '2024-01-31 23:30:00', DATE '2024-01-31'),
  (2, 'xyz', TIMESTAMP '1969-12-31 00:30:00', DATE '1969-12-31', -5, TIMESTAMP_NTZ '1969-12-31 23:30:00', DATE '1969-12-31'),
  (3, NULL, NULL, NULL, NULL, NULL, NULL);

SELECT partition.* FROM db.parts.partitions ORDER BY kind NULLS FIRST;

CREATE TABLE IF NOT EXISTS db.parts (x int) USING iceberg;

-- refused
CREATE TABLE db.parts (x int) USING iceberg;

CREATE TABLE db.copy USING iceberg PARTITIONED BY (num) TBLPROPERTIES ('a' = 'b')
AS SELECT id, kind, num FROM db.parts WHERE id < 3;

SELECT * FROM db.copy ORDER BY id;

REPLACE TABLE db.copy USING iceberg AS SELECT id, upper(kind) AS kind, day FROM db.parts;

CREATE OR REPLACE TABLE db.copy (id bigint, note string COMMENT 'what was added') USING iceberg
PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('a' = 'c');

SELECT * FROM db.copy;

INSERT INTO db.copy VALUES (1, 'again');

CREATE OR REPLACE TABLE db.fresh USING iceberg AS SELECT 1 AS x;

-- refused
REPLACE TABLE db.nothing USING iceberg AS SELECT 1 AS x;

CREATE TABLE db.wide USING iceberg AS SELECT id, named_struct('a', id, 'b', array(id)) AS s FROM range(3);

CREATE OR REPLACE TABLE db.wide USING iceberg AS SELECT s, id AS num FROM db.wide WHERE id > 0;

SELECT * FROM db.wide ORDER BY num;

ALTER TABLE db.fresh RENAME TO db.named;

SHOW TABLES IN db;

TRUNCATE TABLE db.named;

DROP TABLE db.named;

DROP TABLE db.copy PURGE;

DROP TABLE IF EXISTS db.copy;

-- refused
DROP TABLE db.copy;

CREATE TABLE db.inner.t (id bigint) USING iceberg;

-- refused
DROP NAMESPACE db.inner;

-- only here: Java's catalogs refuse to drop a namespace with tables, CASCADE or not
DROP NAMESPACE db.inner CASCADE;

-- only there: it is gone here
DROP TABLE db.inner.t;

-- only there: it is gone here
DROP NAMESPACE db.inner;

SHOW NAMESPACES IN db;
