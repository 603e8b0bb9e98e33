-- Columns are added, moved, renamed, retyped and dropped, at the top and nested.

CREATE TABLE db.t (id bigint, name string, home struct<city: string, zip: int>, tags array<struct<k: string>>,
  places map<string, struct<x: float>>, small int, single float, price decimal(9, 2)) USING iceberg;

INSERT INTO db.t VALUES (1, 'a', named_struct('city', 'Oslo', 'zip', 150), array(named_struct('k', 'v')),
  map('p', named_struct('x', float(1.5))), 7, float(0.5), 1.25);

ALTER TABLE db.t ADD COLUMN note string COMMENT 'a note';

ALTER TABLE db.t ADD COLUMNS (one int, two double AFTER id, three date FIRST);

ALTER TABLE db.t ADD COLUMN home.street string FIRST;

ALTER TABLE db.t ADD COLUMN tags.element.w int;

ALTER TABLE db.t ADD COLUMN places.value.y double AFTER x;

INSERT INTO db.t BY NAME SELECT 2L AS id, 'n' AS note, DATE '2024-01-01' AS three;

SELECT * FROM db.t ORDER BY id;

ALTER TABLE db.t ALTER COLUMN small TYPE bigint;

ALTER TABLE db.t ALTER COLUMN single TYPE double;

ALTER TABLE db.t ALTER COLUMN price TYPE decimal(12, 2);

ALTER TABLE db.t ALTER COLUMN home.zip TYPE bigint;

ALTER TABLE db.t ALTER COLUMN places.value.x TYPE double;

-- refused
ALTER TABLE db.t ALTER COLUMN small TYPE int;

-- refused
ALTER TABLE db.t ALTER COLUMN name SET NOT NULL;

ALTER TABLE db.t RENAME COLUMN name TO title;

ALTER TABLE db.t RENAME COLUMN home.city TO town;

ALTER TABLE db.t ALTER COLUMN title COMMENT 'what it is called';

ALTER TABLE db.t ALTER COLUMN title FIRST;

ALTER TABLE db.t ALTER COLUMN home.zip AFTER street;

ALTER TABLE db.t DROP COLUMN one;

ALTER TABLE db.t DROP COLUMNS (two, home.street);

-- refused
ALTER TABLE db.t DROP COLUMN nothing;

ALTER TABLE db.t DROP COLUMN IF EXISTS nothing;

SELECT title, home.town, home.zip, tags[0].w, places['p'].x FROM db.t WHERE small = 7 OR note = 'n' ORDER BY id;

SHOW COLUMNS IN db.t;

DESCRIBE db.t;

CREATE TABLE db.strict (id bigint NOT NULL, part string NOT NULL, v int) USING iceberg;

ALTER TABLE db.strict ALTER COLUMN v DROP NOT NULL;

ALTER TABLE db.strict ALTER COLUMN part DROP NOT NULL;

ALTER TABLE db.strict SET IDENTIFIER FIELDS id;

-- refused
ALTER TABLE db.strict DROP COLUMN id;

-- refused
ALTER TABLE db.strict SET IDENTIFIER FIELDS v;

ALTER TABLE db.strict DROP IDENTIFIER FIELDS id;

-- refused
INSERT INTO db.strict VALUES (NULL, 'a', 1);
