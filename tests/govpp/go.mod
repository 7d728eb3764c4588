module thalweg/tests/govpp

go 1.24.0

require go.fd.io/govpp v0.13.0

require (
	github.com/fsnotify/fsnotify v1.9.0 // indirect
	github.com/ftrvxmtrx/fd v0.0.0-20150925145434-c6d800382fff // indirect
	github.com/lunixbochs/struc v0.0.0-20200521075829-a4cb8d33dbbe // indirect
	github.com/sirupsen/logrus v1.9.3 // indirect
	golang.org/x/sys v0.35.0 // indirect
)
