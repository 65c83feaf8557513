module grange

go 1.26
