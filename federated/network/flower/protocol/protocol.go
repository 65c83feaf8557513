// Package protocol holds the messages of Flower's wire, generated from the .proto files beside it.
package protocol
