-- INSERT INTO and OVERWRITE, static and dynamic, by position, by list and by name.

CREATE TABLE db.t (id bigint, part string, v double) USING iceberg PARTITIONED BY (part);

INSERT INTO db.t VALUES (1, 'a', 1.5), (2, 'b', 2.5), (3, 'c', 3.5);

INSERT INTO db.t SELECT id + 10, 'a', id / 2 FROM range(3);

INSERT INTO db.t (part, id) VALUES ('d', 20);

INSERT INTO db.t BY NAME SELECT 'e' AS part, 30 AS id;

WITH s AS (SELECT 40 AS id) INSERT INTO db.t SELECT id, 'f', id FROM s;

INSERT INTO db.t TABLE db.t;

-- refused
INSERT INTO db.t VALUES (1, 'a');

-- refused
INSERT INTO db.t VALUES ('x', 'a', 1.0);

-- refused
INSERT INTO db.t BY NAME SELECT 1 AS id, 2 AS nothing;

INSERT OVERWRITE db.t PARTITION (part = 'a') SELECT 100, 1.0;

INSERT INTO db.t PARTITION (part = 'z') VALUES (200, 2.0);

INSERT OVERWRITE db.t PARTITION (part) SELECT id, part, v FROM db.t WHERE part IN ('a', 'b');

SET spark.sql.sources.partitionOverwriteMode = dynamic;

INSERT INTO db.t VALUES (5, 'x', 5), (6, 'y', 6);

INSERT OVERWRITE db.t VALUES (50, 'x', 0.0), (51, 'w', 0.0);

INSERT OVERWRITE db.t PARTITION (part = 'y') SELECT 60, 6.5;

SET spark.sql.sources.partitionOverwriteMode = static;

INSERT INTO db.t REPLACE WHERE part = 'x' SELECT 70, 'x', 7.0;

INSERT OVERWRITE db.t SELECT 1, 'only', NULL;

SELECT * FROM db.t ORDER BY id;

ALTER TABLE db.t CREATE BRANCH audit;

INSERT INTO db.t.branch_audit VALUES (2, 'audit', 2.0);

SELECT * FROM db.t.branch_audit ORDER BY id;

SELECT count(*) FROM db.t;

SET spark.sql.storeAssignmentPolicy = LEGACY;

-- refused
INSERT INTO db.t VALUES ('x', 9, 'y');

SET spark.sql.storeAssignmentPolicy = STRICT;

-- refused
INSERT INTO db.t SELECT 1L, 'a', 1.5;

-- refused
INSERT INTO db.t SELECT 1D, 'a', 1D;

INSERT INTO db.t SELECT 1L, 'a', 1.5D;

SET spark.sql.storeAssignmentPolicy = ANSI;

-- refused
INSERT INTO db.t VALUES (9223372036854775807D * 2, 'a', 1.0);
CREATE TABLE db.constants (id int, d date, n int) PARTITIONED BY (d, n);
INSERT INTO db.constants PARTITION (d = '2024-01-02', n = '7') SELECT 3;
INSERT INTO db.constants PARTITION (d = '2024-01-02', n) SELECT 4, 8;
INSERT OVERWRITE db.constants PARTITION (d = '2024-01-02', n = 7) SELECT 5;
SELECT * FROM db.constants ORDER BY id;
-- refused
INSERT INTO db.constants PARTITION (d = 'no date', n = 1) SELECT 3;
