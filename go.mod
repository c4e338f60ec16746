module github.com/holdfast-go/holdfast

go 1.25.0

require (
	github.com/redis/rueidis v1.0.78
	github.com/redis/rueidis/rueidiscompat v1.0.78
	github.com/stretchr/testify v1.12.1
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
