-- MERGE WITH SCHEMA EVOLUTION: what the source has more becomes columns of the table.

CREATE TABLE db.t (id bigint, v string, kept int) USING iceberg TBLPROPERTIES ('format-version' = '2');

INSERT INTO db.t VALUES (1, 'a', 10), (2, 'b', 20);

MERGE WITH SCHEMA EVOLUTION INTO db.t t USING (SELECT 2L AS id, 'c' AS v, 25 AS kept, 5 AS more UNION ALL SELECT 3L, 'd', 30, 6) s
ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

SELECT * FROM db.t ORDER BY id;

MERGE WITH SCHEMA EVOLUTION INTO db.t t USING (SELECT 3L AS id, DATE '2024-01-01' AS day, 'e' AS v UNION ALL SELECT 4L, NULL, 'f') s
ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

SELECT * FROM db.t ORDER BY id;

MERGE WITH SCHEMA EVOLUTION INTO db.t t USING (SELECT 4L AS id, 'g' AS v, 1 AS other) s
ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v;

SELECT * FROM db.t ORDER BY id;
