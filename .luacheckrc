std = "lua51"
read_globals = { "redis", "struct" }
max_line_length = 140
