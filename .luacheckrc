std = "lua51"
read_globals = { "redis" }
max_line_length = 140
