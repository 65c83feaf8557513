package record

import (
	"fmt"

	"grange/federated/network/flower/protocol"
)

// maxDepth is how deep a message's tree is: message, records, record, array, piece.
const maxDepth = 5

// Flatten lists the objects of a tree, each once, children first. A tree of more than limit objects, each counted as
// often as it is there, is refused.
func Flatten(tree *protocol.ObjectTree, limit int) ([]ID, error) {
	var ids []ID
	seen := map[ID]bool{}
	count := 0
	var visit func(*protocol.ObjectTree, int) error
	visit = func(node *protocol.ObjectTree, depth int) error {
		if count++; count > limit || depth > maxDepth {
			return fmt.Errorf("%w: a tree of more than %d objects, or deeper than %d", ErrFormat, limit, maxDepth)
		}
		id, err := ParseID(node.GetObjectId())
		if err != nil {
			return err
		}
		for _, child := range node.GetChildren() {
			if err := visit(child, depth+1); err != nil {
				return err
			}
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
		return nil
	}
	if err := visit(tree, 1); err != nil {
		return nil, err
	}
	return ids, nil
}

// Tree is the tree of an object, whose children's trees are given.
func Tree(id ID, children ...*protocol.ObjectTree) *protocol.ObjectTree {
	return &protocol.ObjectTree{ObjectId: id.String(), Children: children}
}
