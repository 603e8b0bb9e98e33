{{ config(materialized='incremental', unique_key='day', incremental_strategy='merge') }}
SELECT day, sum(amount) AS amount
FROM {{ ref('orders') }}
{% if is_incremental() %}
WHERE day >= (SELECT max(day) FROM {{ this }})
{% endif %}
GROUP BY day
