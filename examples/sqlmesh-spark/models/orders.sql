MODEL (
  name shop.orders,
  kind SEED (path '../seeds/orders.csv'),
  columns (id BIGINT, customer STRING, amount DOUBLE, day DATE)
);
