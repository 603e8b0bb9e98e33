-- The same things in other words: Spark has several for many.

CREATE TABLE db.t (id bigint, home struct<city: string, zip: int>, small int, note string) USING iceberg
PARTITIONED BY (kind string, day date) TBLPROPERTIES ('format-version' = '2');

INSERT INTO db.t VALUES (1, named_struct('city', 'Oslo', 'zip', 150), 7, 'a', 'x', DATE '2024-01-01'),
  (DEFAULT, NULL, DEFAULT, 'b', 'y', DEFAULT);

INSERT INTO db.t (id, note, kind) VALUES (3, DEFAULT, 'z');

SELECT * FROM db.t ORDER BY note NULLS FIRST;

ALTER TABLE db.t ADD COLUMN place struct<x: double, more: array<struct<k: string, v: int>>>;

ALTER TABLE db.t ADD COLUMNS (facts map<string, struct<a: int, b: int>> COMMENT 'a < b', last int);

ALTER TABLE db.t CHANGE COLUMN small small bigint COMMENT 'a number' FIRST;

ALTER TABLE db.t CHANGE small COMMENT 'a count';

ALTER TABLE db.t ALTER small AFTER id;

-- refused
ALTER TABLE db.t CHANGE COLUMN small large bigint;

ALTER TABLE db.t ALTER COLUMN id COMMENT 'the key', home.zip TYPE bigint, note FIRST;

-- refused
ALTER TABLE db.t ALTER COLUMN id COMMENT 'key', nothing COMMENT 'gone';

DESCRIBE db.t small;

DESCRIBE TABLE db.t id;

-- refused
DESCRIBE db.t nothing;

-- refused
DESCRIBE db.t home.zip;

COMMENT ON TABLE db.t IS 'what happened';

COMMENT ON NAMESPACE db IS 'for trials';

REFRESH TABLE db.t;

UPDATE db.t SET note = DEFAULT WHERE id = 1;

MERGE INTO db.t t USING (SELECT 1L AS id UNION ALL SELECT 9L) s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET t.last = 5, t.note = DEFAULT
WHEN NOT MATCHED THEN INSERT (id, note, last) VALUES (s.id, DEFAULT, 6);

SELECT id, note, last FROM db.t ORDER BY id NULLS FIRST;

CREATE TABLE db.in_orc (id bigint, name string) USING orc;

INSERT INTO db.in_orc VALUES (1, 'a');

SELECT file_format, record_count FROM db.in_orc.files ORDER BY 1;

-- refused
CREATE TABLE db.in_csv (id bigint) USING csv;

ALTER TABLE db.in_orc REPLACE COLUMNS (id bigint COMMENT 'anew', day date);

SELECT * FROM db.in_orc ORDER BY id;

CACHE TABLE kept AS SELECT id FROM db.t WHERE id > 1;

SELECT * FROM kept ORDER BY id;

UNCACHE TABLE kept;

DROP VIEW kept;

-- refused
ALTER TABLE db.t ADD PARTITION (kind = 'q');

-- refused
ALTER TABLE db.t DROP PARTITION (kind = 'x');

-- refused
ALTER TABLE db.t RECOVER PARTITIONS;

-- refused
ANALYZE TABLE db.t COMPUTE STATISTICS;

-- refused
LOAD DATA INPATH '/nowhere' INTO TABLE db.t;

-- refused
MSCK REPAIR TABLE db.t;

SHOW COLUMNS IN db.t;
