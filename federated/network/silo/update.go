package silo

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"grange/federated/network/objects"
	"grange/federated/network/wire"
)

// update is a trained model that waits for the coordinator to take it. It lies in two files of the silo's folder: the
// model, and a note about it that is written after it.
type update struct {
	Run   string `json:"run"`
	Round int    `json:"round"`
	// Model is what the training started from.
	Model objects.Digest `json:"model"`
	// Ticket names the file. Size and Checksum (CRC-32C) are the file's.
	Ticket   []byte `json:"ticket"`
	Size     int64  `json:"size"`
	Checksum uint32 `json:"checksum"`
	Examples int    `json:"examples"`
	// Loss is written as its bits, since it need not be finite.
	Loss uint64 `json:"loss_bits"`

	// content is the file if it is in memory.
	content *content
}

func (u *update) header() *wire.UploadHeader {
	return &wire.UploadHeader{
		Run: u.Run, Round: uint32(u.Round), Ticket: u.Ticket, Size: uint64(u.Size), Checksum: u.Checksum, Examples: uint64(u.Examples),
		Loss: math.Float64frombits(u.Loss),
	}
}

// The names of an update's files.
const (
	noteFile    = "update.json"
	filePrefix  = "update-"
	fileSuffix  = ".safetensors"
	maxNoteSize = 1 << 16
)

// ticketSize is the length of the random name of an upload.
const ticketSize = 16

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// outbox is where an update waits. It holds one at most. Files are not forced to the disk: they survive the end of the
// process, and after a loss of power the round is trained again.
type outbox struct{ folder string }

func openOutbox(folder string) (outbox, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return outbox{}, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return outbox{folder}, nil
}

func (o outbox) path(u *update) string {
	return filepath.Join(o.folder, filePrefix+hex.EncodeToString(u.Ticket)+fileSuffix)
}

// put keeps an update, and throws away any other.
func (o outbox) put(u update, c *content) (_ *update, err error) {
	if err := o.clear(); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(o.folder, filePrefix+"*.part")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
			err = fmt.Errorf("%w: %w", ErrFolder, err)
		}
	}()
	u.Ticket = make([]byte, ticketSize)
	if _, err = rand.Read(u.Ticket); err != nil {
		return nil, err
	}
	for _, part := range [][]byte{c.header, c.values} {
		if _, err = file.Write(part); err != nil {
			return nil, err
		}
		u.Checksum = crc32.Update(u.Checksum, castagnoli, part)
	}
	u.Size, u.content = int64(len(c.header)+len(c.values)), c
	if err = file.Close(); err != nil {
		return nil, err
	}
	if err = os.Rename(file.Name(), o.path(&u)); err != nil {
		return nil, err
	}
	text, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	note := filepath.Join(o.folder, noteFile)
	if err = os.WriteFile(note+".part", text, 0o600); err != nil {
		return nil, err
	}
	return &u, os.Rename(note+".part", note)
}

// get returns the update for a task, if it is there: nil if it is not.
func (o outbox) get(run string, round int, from objects.Digest) (*update, error) {
	text, err := readSmall(filepath.Join(o.folder, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	var u update
	if json.Unmarshal(text, &u) != nil || u.Run != run || u.Round != round || u.Model != from || len(u.Ticket) != ticketSize || o.check(&u) != nil {
		return nil, o.clear()
	}
	return &u, nil
}

func readSmall(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxNoteSize))
}

// check reads an update's file and compares its checksum.
func (o outbox) check(u *update) error {
	file, err := os.Open(o.path(u))
	if err != nil {
		return err
	}
	defer file.Close()
	sum := crc32.New(castagnoli)
	n, err := io.Copy(sum, file)
	if err == nil && (n != u.Size || sum.Sum32() != u.Checksum) {
		err = fmt.Errorf("%w: %s", errDamaged, o.path(u))
	}
	return err
}

// send sends an update's file from an offset to its end.
func (o outbox) send(u *update, offset uint64, alive func(), pass func(*wire.Piece) error) error {
	if u.content != nil {
		return u.content.send(offset, alive, pass)
	}
	file, err := os.Open(o.path(u))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	defer file.Close()
	return send(file, offset, alive, pass)
}

// clear throws away what is there, the note first.
func (o outbox) clear() error {
	entries, err := os.ReadDir(o.folder)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	names := []string{noteFile}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), filePrefix) {
			names = append(names, entry.Name())
		}
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(o.folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %w", ErrFolder, err)
		}
	}
	return nil
}
