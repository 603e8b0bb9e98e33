SELECT customer, count(*) AS orders, sum(amount) AS amount
FROM {{ ref('orders') }}
GROUP BY customer
