// Package archtest holds the tests that keep the house in order: which package
// may import which and why, that every package says what it is for, and that
// the README's commands work.
package archtest
