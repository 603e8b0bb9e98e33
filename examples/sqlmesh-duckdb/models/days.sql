MODEL (
  name shop.days,
  kind INCREMENTAL_BY_TIME_RANGE (time_column day),
  cron '@daily',
  audits (not_null(columns := (day)))
);

SELECT day, sum(amount) AS amount
FROM shop.orders
WHERE day BETWEEN @start_date AND @end_date
GROUP BY day
