{{ config(materialized='incremental', unique_key='id', incremental_strategy='merge') }}
SELECT * FROM {{ ref('orders') }}
