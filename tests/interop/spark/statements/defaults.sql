-- Defaults of columns, in version 3. Spark takes none for tables of Iceberg's, so that they are here alone.

-- only here: Spark's catalogs of others take no default
CREATE TABLE db.t (id bigint, v int DEFAULT 7 COMMENT 'a number', word string DEFAULT 'it''s') USING iceberg
TBLPROPERTIES ('format-version' = '3');

-- only here
INSERT INTO db.t (id) VALUES (1);

-- only here
ALTER TABLE db.t ADD COLUMN late date DEFAULT DATE '2024-02-29' AFTER id;

-- only here
ALTER TABLE db.t ALTER COLUMN v SET DEFAULT 8 + 1;

-- only here
MERGE INTO db.t t USING (SELECT 2L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id);

-- only here
DROP TABLE db.t;

CREATE TABLE db.t (id bigint) USING iceberg TBLPROPERTIES ('format-version' = '2');

-- refused
ALTER TABLE db.t ADD COLUMN v int DEFAULT 1;

SELECT * FROM db.t;
