// Package identity says who is who.
package identity
