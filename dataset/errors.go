package dataset

import "errors"

// OpenError says which data set could not be opened.
type OpenError struct {
	Name string // as it was asked for
	Err  error
}

func (e *OpenError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with it.
func (e *OpenError) Unwrap() error { return e.Err }

// What can be wrong with a data set. Errors of this package wrap one of these and name the file.
var (
	// ErrUnknown is a data set name that does not exist.
	ErrUnknown = errors.New("dataset: unknown data set")
	// ErrMissing is a data set, or a file of one, that is not where it should be.
	ErrMissing = errors.New("dataset: not found")
	// ErrCorrupt is a file that is truncated, damaged or not of the expected format.
	ErrCorrupt = errors.New("dataset: damaged or unexpected file")
	// ErrTooLarge is input beyond the limits given in Options.
	ErrTooLarge = errors.New("dataset: larger than the limit")
	// ErrLabel is a label outside the range of the classes.
	ErrLabel = errors.New("dataset: label out of range")
	// ErrShape is an image whose size differs from that of the other images.
	ErrShape = errors.New("dataset: unexpected image size")
	// ErrEmptyClass is a class without images.
	ErrEmptyClass = errors.New("dataset: class without images")
	// ErrUnsafe is a file name or link that leads out of its archive or folder.
	ErrUnsafe = errors.New("dataset: unsafe path")
	// ErrEncoding is a name or text that is not valid UTF-8.
	ErrEncoding = errors.New("dataset: text is not UTF-8")
	// ErrChecksum is a download whose contents are not the published ones.
	ErrChecksum = errors.New("dataset: checksum differs")
	// ErrDownload is a download that failed from every source.
	ErrDownload = errors.New("dataset: download failed")
	// ErrSplit is a split that cannot be made.
	ErrSplit = errors.New("dataset: cannot split")
	// ErrContribution is a contribution of more points than a member has.
	ErrContribution = errors.New("dataset: contribution out of range")
	// ErrNoise is a noise rate or transition matrix that is not one.
	ErrNoise = errors.New("dataset: invalid label noise")
)
