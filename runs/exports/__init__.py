"""Charts as files: tables (CSV, Parquet), figures (SVG, PDF) and LaTeX, each with the hash of what it rests on."""
