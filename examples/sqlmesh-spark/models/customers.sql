MODEL (
  name shop.customers,
  kind FULL,
  audits (unique_values(columns := (customer)))
);

SELECT customer, count(*) AS orders, sum(amount) AS amount
FROM shop.orders
GROUP BY customer
