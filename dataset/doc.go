// Package dataset holds labelled images and deals them to the members of a co-operative.
//
// Open reads a data set by name: "fashion" is built into the program; "fashion-full" and "cifar10" come from files the
// user has or that a Fetcher downloads; "folder:PATH" is the user's own data. Readers trust nothing: every size is
// checked before memory is taken for it, and every error names the file and what was expected of it.
//
// A Split deals the training points to members, Partition.Subset is the part of them a member contributes, and Noise
// makes labels wrong as a scenario asks. Each choice comes from the seed, and contributions are nested: a larger
// contribution, or a larger noise rate, keeps the points (the wrong labels) of the smaller one.
//
// Images stay bytes. A Normalizer turns them into floats as they are needed, so a data set takes as much memory as its
// pixels.
package dataset
