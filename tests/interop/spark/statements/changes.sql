-- DELETE, UPDATE and MERGE, by copy-on-write and then by merge-on-read.

CREATE TABLE db.t (id bigint, part string, v double, s struct<a: int, b: string>) USING iceberg
PARTITIONED BY (part) TBLPROPERTIES ('format-version' = '2');

INSERT INTO db.t SELECT id, IF(id % 2 = 0, 'even', 'odd'), id * 1.5, named_struct('a', INT(id), 'b', 'x') FROM range(20);

DELETE FROM db.t WHERE id = 3;

DELETE FROM db.t WHERE part = 'odd' AND v > 25;

DELETE FROM db.t WHERE id IN (SELECT id + 1 FROM db.t WHERE id = 4);

UPDATE db.t SET v = v + 1, s.b = upper(s.b) WHERE id < 4;

UPDATE db.t AS u SET part = 'moved' WHERE u.id BETWEEN 6 AND 7;

MERGE INTO db.t t USING (SELECT * FROM VALUES (1, 'm'), (2, 'd'), (50, 'n') AS v(id, what)) s ON t.id = s.id
WHEN MATCHED AND s.what = 'd' THEN DELETE
WHEN MATCHED THEN UPDATE SET v = -1, part = s.what
WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, s.what);

MERGE INTO db.t USING (SELECT 8 AS id, 'all' AS part, 0 AS v, named_struct('a', 0, 'b', 'z') AS s
UNION ALL SELECT 60, 'new', 1, NULL) AS src ON db.t.id = src.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

MERGE INTO db.t t USING (SELECT 10 AS id) s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET v = 0
WHEN NOT MATCHED BY SOURCE AND t.part = 'moved' THEN DELETE
WHEN NOT MATCHED BY SOURCE AND t.id > 14 THEN UPDATE SET v = t.v * 2;

-- refused
MERGE INTO db.t t USING (SELECT 10 AS id UNION ALL SELECT 10) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1;

MERGE INTO db.t t USING (SELECT 10 AS id UNION ALL SELECT 10) s ON t.id = s.id WHEN MATCHED THEN DELETE;

SELECT * FROM db.t ORDER BY id;

ALTER TABLE db.t SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read',
  'write.merge.mode' = 'merge-on-read');

DELETE FROM db.t WHERE id = 0;

UPDATE db.t SET v = NULL WHERE id = 12;

MERGE INTO db.t t USING (SELECT 12 AS id, 'k' AS part UNION ALL SELECT 70, 'k') s ON t.id = s.id AND t.v IS NULL
WHEN MATCHED THEN UPDATE SET part = s.part
WHEN NOT MATCHED THEN INSERT (id, part, v) VALUES (s.id, s.part, 7);

-- answer differs: a file of which every row goes is dropped here, and gets a delete file there
SELECT content, sum(record_count) AS n FROM db.t.files GROUP BY content ORDER BY content;

ALTER TABLE db.t SET TBLPROPERTIES ('format-version' = '3');

DELETE FROM db.t WHERE id = 4;

MERGE INTO db.t t USING (SELECT 14 AS id) s ON t.id = s.id
WHEN MATCHED THEN DELETE
WHEN NOT MATCHED BY SOURCE AND id = 16 THEN UPDATE SET part = 'left'
WHEN NOT MATCHED BY SOURCE AND id = 60 THEN DELETE;

UPDATE db.t SET part = CASE WHEN v > 5 THEN 'high' ELSE 'low' END;

-- refused
MERGE INTO db.t t USING (SELECT 16 AS id UNION ALL SELECT 16) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1;

-- refused
UPDATE db.t SET nothing = 1;

-- refused
DELETE FROM db.t WHERE nothing = 1;

DELETE FROM db.t;

SELECT count(*) FROM db.t;
