module github.com/holdfast-go/holdfast/client/locktest

go 1.25.0

require (
	github.com/holdfast-go/holdfast v0.0.0
	github.com/redis/rueidis v1.0.78
	github.com/stretchr/testify v1.12.1
	github.com/yuin/gopher-lua v1.1.2
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/holdfast-go/holdfast => ../..
