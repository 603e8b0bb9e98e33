-- Versions, branches and tags.

CREATE TABLE db.t (id bigint, v string) USING iceberg;

INSERT INTO db.t VALUES (1, 'a');

INSERT INTO db.t VALUES (2, 'b');

ALTER TABLE db.t ADD COLUMN late int;

INSERT INTO db.t VALUES (3, 'c', 3);

SELECT * FROM db.t VERSION AS OF {snapshot db.t 0};

SELECT * FROM db.t FOR VERSION AS OF {snapshot db.t 1} ORDER BY id;

SELECT * FROM db.t TIMESTAMP AS OF '{time db.t 0}';

SELECT * FROM db.t FOR SYSTEM_TIME AS OF '{time db.t 2}' ORDER BY id;

SELECT * FROM db.t FOR SYSTEM_VERSION AS OF {snapshot db.t 0};

ALTER TABLE db.t CREATE TAG first AS OF VERSION {snapshot db.t 0} RETAIN 30 DAYS;

ALTER TABLE db.t CREATE BRANCH audit AS OF VERSION {snapshot db.t 1} RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 DAYS;

SELECT * FROM db.t VERSION AS OF 'first';

SELECT * FROM db.t VERSION AS OF 'audit' ORDER BY id;

INSERT INTO db.t.branch_audit VALUES (10, 'audited', NULL);

SELECT * FROM db.t.branch_audit ORDER BY id;

UPDATE db.t.branch_audit SET v = 'changed' WHERE id = 1;

DELETE FROM db.t.branch_audit WHERE id = 2;

MERGE INTO db.t.branch_audit t USING (SELECT 10L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET late = 1;

SELECT a.id, b.v FROM db.t VERSION AS OF 'audit' a JOIN db.t b ON a.id = b.id;

ALTER TABLE db.t REPLACE TAG first AS OF VERSION {snapshot db.t 1} RETAIN 5 DAYS;

ALTER TABLE db.t CREATE OR REPLACE BRANCH audit AS OF VERSION {snapshot db.t 0} RETAIN 10 DAYS;

-- refused
ALTER TABLE db.t CREATE TAG first;

ALTER TABLE db.t CREATE TAG IF NOT EXISTS first;

ALTER TABLE db.t CREATE TAG `second one`;

SELECT name, type, snapshot_id, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms FROM db.t.refs ORDER BY name;

ALTER TABLE db.t DROP TAG `second one`;

ALTER TABLE db.t DROP BRANCH audit;

ALTER TABLE db.t DROP BRANCH IF EXISTS audit;

-- refused
ALTER TABLE db.t DROP BRANCH audit;

-- refused
SELECT * FROM db.t VERSION AS OF 'nothing';

-- refused
SELECT * FROM db.t VERSION AS OF 12345;
