{# DuckDB 1.5 refuses CASCADE for tables of Iceberg. #}
{% macro duckdb__drop_relation(relation) -%}
  {% call statement('drop_relation', auto_begin=False) -%}
    DROP {{ relation.type }} IF EXISTS {{ relation }} {{ '' if relation.database == 'lake' else 'CASCADE' }}
  {%- endcall %}
{%- endmacro %}
