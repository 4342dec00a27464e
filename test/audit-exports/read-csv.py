"""Reads an export of an audit trail as Python's csv and as DuckDB have it, and prints the rows of both: FILE"""

import csv
import json
import sys

import duckdb

path = sys.argv[1]

# DuckDB and a table know one empty text, so it is told that nothing is null.
relation = duckdb.read_csv(path, header=True, all_varchar=True, na_values="\0none")
columns = relation.columns
duck = [dict(zip(columns, ["" if value is None else value for value in row])) for row in relation.fetchall()]

with open(path, newline="", encoding="utf-8") as file:
    python = list(csv.DictReader(file, strict=True))

# What DuckDB itself makes of JSON in cells.
targets = duckdb.sql(f"SELECT json_array_length(targets) FROM read_csv('{path}', header=true, all_varchar=true)").fetchall()

print(json.dumps({"csv": python, "duckdb": duck, "columns": columns, "targets": [count for (count,) in targets]}))
