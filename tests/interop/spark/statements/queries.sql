-- Queries: joins, CTEs, subqueries, set operations, views, and filters on all kinds of columns.

CREATE TABLE db.orders (id bigint, customer int, total decimal(9, 2), day date, note string) USING iceberg
PARTITIONED BY (months(day));

CREATE TABLE db.customers (id int, name string, home struct<city: string>) USING iceberg;

INSERT INTO db.orders SELECT id, INT(id % 5), CAST(id * 1.25 AS decimal(9, 2)), DATE '2024-01-01' + INT(id),
  IF(id % 3 = 0, NULL, concat('n', id)) FROM range(90);

INSERT INTO db.customers VALUES (0, 'ann', named_struct('city', 'Oslo')), (1, 'bob', NULL), (2, 'cid', named_struct('city', NULL)),
  (9, 'zoe', named_struct('city', 'Rome'));

SELECT c.name, count(*) AS n, sum(o.total) AS total FROM db.orders o JOIN db.customers c ON o.customer = c.id
WHERE o.day >= '2024-02-01' GROUP BY c.name ORDER BY c.name;

SELECT c.id, o.id FROM db.customers c LEFT JOIN db.orders o ON o.customer = c.id AND o.id < 3;

SELECT id FROM db.customers c WHERE NOT EXISTS (SELECT 1 FROM db.orders o WHERE o.customer = c.id);

SELECT id FROM db.orders WHERE customer IN (SELECT id FROM db.customers WHERE home.city = 'Oslo') AND id < 20;

WITH recent AS (SELECT * FROM db.orders WHERE day > '2024-03-20'), names AS (SELECT id, name FROM db.customers)
SELECT r.id, n.name FROM recent r LEFT JOIN names n ON r.customer = n.id;

SELECT id, rank() OVER (PARTITION BY customer ORDER BY total DESC) AS place FROM db.orders WHERE id < 12;

SELECT id FROM db.orders WHERE id < 3 UNION ALL SELECT id FROM db.customers EXCEPT SELECT 1;

SELECT max(total), min(day), count(note), count(DISTINCT customer) FROM db.orders;

SELECT id FROM db.orders WHERE note IS NULL AND NOT (id > 10) OR note LIKE 'n8%' OR total = 2.50 OR day = DATE '2024-02-29';

SELECT customer, sum(total) FROM db.orders GROUP BY ROLLUP(customer) ORDER BY customer NULLS FIRST;

SELECT * FROM db.customers ORDER BY id DESC LIMIT 2;

SELECT (SELECT max(id) FROM db.orders) AS last, name FROM db.customers WHERE id = 0;

SELECT count(*) FROM db.orders;

SELECT DISTINCT customer FROM {lake}.db.orders WHERE customer <=> 3;

SELECT db.customers.name FROM db.customers WHERE db.customers.id <> 1;

SELECT o.ID, O.Note FROM db.orders O WHERE o.iD = 7;

CREATE TEMPORARY VIEW big_orders AS SELECT id, total FROM db.orders WHERE total > 100;

SELECT count(*) FROM big_orders b JOIN db.orders o ON o.id = b.id;

DROP VIEW big_orders;

-- a view that the catalog keeps
CREATE VIEW db.lasting AS SELECT id, id * 2 AS twice FROM db.orders;
SELECT * FROM db.lasting ORDER BY id;
SELECT l.twice, o.id FROM db.lasting l JOIN db.orders o USING (id) ORDER BY 1, 2;
CREATE OR REPLACE VIEW db.lasting AS SELECT id FROM db.orders WHERE id > 1;
SELECT * FROM db.lasting ORDER BY id;
DROP VIEW db.lasting;

-- refused
SELECT nothing FROM db.orders;

-- refused
SELECT * FROM db.nothing;
