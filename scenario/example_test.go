package scenario_test

import (
	"fmt"

	"grange/scenario"
)

func ExampleLoad() {
	s, err := scenario.Load("../examples/hospitals.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := s.Game()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %d members, A(everything) = %.4f\n", s.Name, len(g.Members), g.AccuracyAt([]int64{10000, 10000, 10000, 10000, 10000}))
	// Output: five hospitals: 5 members, A(everything) = 0.7711
}

func ExampleParse() {
	_, err := scenario.Parse("hospitals.yaml", []byte("members:\n  - {name: north, data: 100, noise: 0.1, privcy: 0.4}\n"))
	fmt.Println(err)
	// Output: hospitals.yaml:2:42: unknown key "privcy" in members[0], did you mean "privacy"?
}

func ExampleScenario_Vary() {
	s, err := scenario.Load("../examples/hospitals.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	varied, err := s.Vary("members[0:3].noise", 0.25)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(varied.Members[2].Noise, varied.Members[3].Noise)
	// Output: 0.25 0
}
