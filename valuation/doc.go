// Package valuation says who contributed what: it turns the worth of
// coalitions into one index per member, with error bars.
//
// A valuation is made of three parts. A Game says what every coalition is
// worth, through a Utility; decorators such as Cached, Counted, Limited and
// Averaged wrap one. A method turns worths into values: the exact ones
// (Shapley, Banzhaf, Beta, LeaveOneOut, LeastCore, Nucleolus) read a Table of
// all 2^N worths, while an estimator (Permutation, Stratified, Owen, Kernel,
// SVARM, Adjusted) asks for some of them. A Rule says when an estimator has
// seen enough.
//
// The package is pure: chance comes from Settings.Seed, time from the
// context. The same seed gives the same bytes for any number of workers.
// Package valuation/store keeps worths on disk, so that a run which was killed
// goes on where it stopped.
package valuation
