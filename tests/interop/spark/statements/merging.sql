-- WITH clauses in front of changes, and what a MERGE may be made of.
CREATE TABLE db.m (id bigint, v string) PARTITIONED BY (bucket(2, id));
INSERT INTO db.m VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd');
CREATE TABLE db.s AS SELECT id, concat('s', id) AS v FROM range(8);
WITH s AS (SELECT 1 AS id, 'with' AS v) MERGE INTO db.m t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v;
WITH s AS (SELECT id FROM db.s WHERE id > 3), q AS (SELECT max(id) AS top FROM s)
  MERGE INTO db.m t USING (SELECT s.id, q.top FROM s CROSS JOIN q) AS s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET v = concat('top', s.top) WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new');
SELECT * FROM db.m ORDER BY id;
WITH s AS (SELECT 1 AS id) UPDATE db.m SET v = 'u' WHERE id IN (SELECT id FROM s);
WITH s(k, w) AS (SELECT id, v FROM db.s) UPDATE db.m SET v = (SELECT max(w) FROM s) WHERE id = 2;
WITH s AS (SELECT 5 AS id), r AS (SELECT id + 1 AS id FROM s) DELETE FROM db.m WHERE id IN (SELECT id FROM r);
WITH s AS (SELECT * FROM db.s) INSERT INTO db.m SELECT id + 100, v FROM s WHERE id < 2;
SELECT * FROM db.m ORDER BY id;
WITH q AS (SELECT 1 AS delete) SELECT delete AS merge FROM q;
MERGE INTO db.m AS t USING (WITH q AS (SELECT 2 AS id, 'w' AS v) SELECT * FROM q) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v;
MERGE INTO db.m AS t USING (SELECT 3 AS k, 'unnamed' AS w) ON t.id = k WHEN MATCHED THEN UPDATE SET v = w WHEN NOT MATCHED THEN INSERT (id, v) VALUES (k, w);
MERGE INTO db.m AS t USING (SELECT * FROM VALUES (1, 'x'), (50, 'y') AS v(id, v)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *;
MERGE INTO db.m AS t USING (VALUES (1, 'z'), (51, 'y')) AS s ON t.id = s.col1 WHEN MATCHED THEN UPDATE SET v = s.col2 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (col1, col2);
MERGE INTO db.m t USING (SELECT 1 AS id) s ON t.id = s.id
  WHEN MATCHED AND t.v = 'z' THEN UPDATE SET v = 'first' WHEN MATCHED THEN DELETE
  WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN UPDATE SET v = 'alone' WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE;
SELECT * FROM db.m ORDER BY id;
-- refused
MERGE INTO db.m AS t USING (VALUES (1,'x'),(5,'y')) AS s(id, v) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *;
-- refused
MERGE INTO db.m AS t USING db.s s(a, b) ON t.id = a WHEN MATCHED THEN UPDATE SET v = b;
-- refused
MERGE INTO db.m AS t(a, b) USING db.s s ON t.a = s.id WHEN MATCHED THEN UPDATE SET v = s.v;
-- refused
MERGE INTO db.m t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN MATCHED AND t.v = 'a' THEN UPDATE SET v = 'b';
-- refused
MERGE INTO db.m t USING (SELECT 1 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) WHEN NOT MATCHED BY TARGET AND s.id = 5 THEN INSERT (id) VALUES (6);
-- refused
MERGE INTO db.m t USING (SELECT 1 AS id) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN UPDATE SET v = 'z';
-- refused
MERGE INTO db.m t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE;
-- refused
MERGE WITH SCHEMA EVOLUTION INTO db.m t USING (SELECT 1 AS id, 'x' AS more) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN MATCHED THEN DELETE;
-- refused
MERGE INTO db.m t USING (SELECT 1 AS id) s ON t.id = s.id;
SELECT * FROM db.m ORDER BY id;
-- refused
MERGE WITH SCHEMA EVOLUTION INTO db.m t USING (SELECT 1 AS id, 'x' AS more) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT (id, nosuch) VALUES (1, 2);
MERGE WITH SCHEMA EVOLUTION INTO db.m t USING (SELECT 1L AS id, 'evolved' AS v, 'x' AS more UNION ALL SELECT 900, 'new', 'y') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM db.m ORDER BY id;
