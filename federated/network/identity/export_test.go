package identity

// Forge is the token with another secret.
func (t Token) Forge() Token {
	t.secret[19] ^= 1
	return t
}

// For the fuzz targets.
var (
	DecodeCertificates = decodeCertificates
	ParseRequest       = parseRequest
)
