package cli

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"

	"grange/valuation"
	"grange/valuation/reconstruct"
	"grange/valuation/store"
)

// keptWorths is a file of what models are worth, beside the updates they are
// rebuilt from. A worth is found by its model: so it serves every method that
// asks for the same model, in whatever round, and no other.
type keptWorths struct {
	app   *app
	store *store.Store // nil when nothing can be kept
	once  sync.Once
}

// keepWorths opens the file. Where none can be made, such as on a disk that is
// only read, nothing is kept.
func (a *app) keepWorths(folder, game string) (*keptWorths, error) {
	k := &keptWorths{app: a}
	sum := sha256.Sum256([]byte(game))
	path := filepath.Join(folder, "worths-"+hex.EncodeToString(sum[:4])+".txt")
	var err error
	// Models take the place of coalitions: by 64 bits of their digest.
	k.store, err = store.Open(path, store.Identity{Members: valuation.MaxMembers, Game: game})
	if errors.Is(err, store.ErrFormat) || errors.Is(err, store.ErrOther) {
		return nil, err
	}
	if err != nil {
		k.complain(err)
		return k, nil
	}
	kept := "run it again: it goes on where it stopped; what every model is worth is kept in " + path
	a.kept.Store(&kept)
	return k, nil
}

func (k *keptWorths) complain(err error) {
	k.once.Do(func() {
		fmt.Fprintf(k.app.env.Stderr, "What models are worth is not kept, and a run that is stopped starts again: %v\n", err)
	})
}

// wrap returns what looks a model up before it is evaluated.
func (k *keptWorths) wrap(evaluate reconstruct.Evaluate) reconstruct.Evaluate {
	if k.store == nil {
		return evaluate
	}
	return func(ctx context.Context, weights []float32) (float64, error) {
		key := digest(weights)
		if v, known := k.store.Lookup(key); known {
			return v, nil
		}
		v, err := evaluate(ctx, weights)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return v, err
		}
		if err := k.store.Put(key, v); err != nil {
			k.complain(err)
		}
		return v, nil
	}
}

func (k *keptWorths) close() {
	if k.store != nil {
		if err := k.store.Close(); err != nil {
			k.complain(err)
		}
	}
}

// digest is a model's name in the store.
func digest(weights []float32) valuation.Coalition {
	hash := sha256.New()
	const block = 4096
	var buffer [4 * block]byte
	for from := 0; from < len(weights); from += block {
		part := weights[from:min(from+block, len(weights))]
		for i, w := range part {
			binary.LittleEndian.PutUint32(buffer[4*i:], math.Float32bits(w))
		}
		hash.Write(buffer[:4*len(part)])
	}
	return valuation.Coalition(binary.BigEndian.Uint64(hash.Sum(nil)))
}
