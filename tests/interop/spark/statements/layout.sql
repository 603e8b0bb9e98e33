-- Partition fields, write order, distribution, properties.

CREATE TABLE db.t (id bigint, kind string, ts timestamp, v int) USING iceberg PARTITIONED BY (kind);

INSERT INTO db.t VALUES (1, 'a', TIMESTAMP '2024-01-01 10:00:00', 1), (2, 'b', TIMESTAMP '2024-01-02 10:00:00', 2);

ALTER TABLE db.t ADD PARTITION FIELD bucket(4, id);

ALTER TABLE db.t ADD PARTITION FIELD truncate(10, v) AS tens;

INSERT INTO db.t VALUES (3, 'c', TIMESTAMP '2024-02-02 10:00:00', 33);

ALTER TABLE db.t ADD PARTITION FIELD days(ts);

ALTER TABLE db.t REPLACE PARTITION FIELD days(ts) WITH months(ts);

ALTER TABLE db.t REPLACE PARTITION FIELD tens WITH truncate(100, v) AS hundreds;

ALTER TABLE db.t DROP PARTITION FIELD bucket(4, id);

INSERT INTO db.t VALUES (4, 'd', TIMESTAMP '2024-03-02 10:00:00', 444);

-- refused
ALTER TABLE db.t ADD PARTITION FIELD kind;

SELECT id, kind FROM db.t WHERE kind > 'a' AND ts < '2024-03-01' ORDER BY id;

ALTER TABLE db.t WRITE ORDERED BY kind, id DESC NULLS LAST, days(ts);

ALTER TABLE db.t WRITE DISTRIBUTED BY PARTITION;

ALTER TABLE db.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY bucket(8, id), v;

ALTER TABLE db.t WRITE LOCALLY ORDERED BY v NULLS LAST;

INSERT INTO db.t VALUES (6, 'e', NULL, NULL), (5, 'e', NULL, 5);

ALTER TABLE db.t WRITE UNORDERED;

ALTER TABLE db.t SET TBLPROPERTIES ('write.format.default' = 'parquet', 'note' = 'x y');

ALTER TABLE db.t UNSET TBLPROPERTIES ('note');

ALTER TABLE db.t UNSET TBLPROPERTIES IF EXISTS ('note');

ALTER TABLE db.t DROP PARTITION FIELD kind;

ALTER TABLE db.t DROP PARTITION FIELD hundreds;

ALTER TABLE db.t DROP PARTITION FIELD ts_month;

INSERT INTO db.t VALUES (7, 'f', NULL, 7);

SELECT * FROM db.t ORDER BY id;

ALTER TABLE db.t SET TBLPROPERTIES ('format-version' = '3');

INSERT INTO db.t VALUES (8, 'g', NULL, 8);

SELECT id, _row_id IS NOT NULL AS has_id FROM db.t WHERE id = 8;

CREATE TABLE db.ordered (id bigint NOT NULL, name string NOT NULL, at timestamp, st struct<a: int>) PARTITIONED BY (truncate(4, name), bucket(3, id));
ALTER TABLE db.ordered WRITE ORDERED BY bucket(5, id) DESC, truncate(2, name), days(at) NULLS LAST, st.a;
ALTER TABLE db.ordered SET IDENTIFIER FIELDS id;
SHOW TBLPROPERTIES db.ordered ('sort-order');
SHOW TBLPROPERTIES db.ordered ('identifier-fields');
DESCRIBE db.ordered;
SHOW TBLPROPERTIES db.ordered ('nosuch');
