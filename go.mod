module grange

go 1.26

require (
	github.com/google/go-cmp v0.7.0
	github.com/klauspost/cpuid/v2 v2.4.1
	pgregory.net/rapid v1.3.0
)

require golang.org/x/sys v0.41.0
