package model_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"grange/model"
)

func ExampleNew() {
	spec, err := model.New("cnn", model.Shape{Channels: 1, Height: 28, Width: 28}, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range spec.Layers {
		fmt.Println(l.Name, l.Kind, l.Out)
	}
	fmt.Println(spec.Parameters(), "parameters")
	// Output:
	// conv1 conv 28×28×32
	// relu1 relu 28×28×32
	// pool1 maxpool 14×14×32
	// conv2 conv 14×14×64
	// relu2 relu 14×14×64
	// pool2 maxpool 7×7×64
	// hidden dense 1×1×128
	// relu3 relu 1×1×128
	// output dense 1×1×10
	// 421642 parameters
}

func ExampleWriteSafetensors() {
	spec, err := model.New("softmax", model.Shape{Channels: 1, Height: 2, Width: 2}, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	weights := model.Init(spec, rand.New(rand.NewPCG(1, 1)))
	var file bytes.Buffer
	if err := model.WriteSafetensors(&file, weights, map[string]string{"model": spec.Name}); err != nil {
		fmt.Println(err)
		return
	}
	again, metadata, err := model.ReadSafetensors(&file, spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(metadata["model"], len(again.Flat))
	// Output: softmax 10
}
