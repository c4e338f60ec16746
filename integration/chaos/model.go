package main

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// step is what a holder does to a lock: it enters or it leaves. In a history without a violation
// each of them has a moment between its call and its return.
type step struct {
	Lock  string
	Enter bool
	Owner string
	Token int64
}

// standing is the state of a lock: who is inside, and the last one's token.
type standing struct {
	inside bool
	owner  string
	token  int64
}

// model is a lock: one is inside at a time, and tokens grow. It is partitioned by the lock's name.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		at := map[string]int{}
		for _, o := range history {
			name := o.Input.(step).Lock
			if _, known := at[name]; !known {
				at[name] = len(parts)
				parts = append(parts, nil)
			}
			parts[at[name]] = append(parts[at[name]], o)
		}
		return parts
	},
	Init: func() any { return standing{} },
	Step: func(state, input, _ any) (bool, any) {
		s, in := state.(standing), input.(step)
		if in.Enter {
			again := in.Token == s.token && in.Owner == s.owner
			return !s.inside && (in.Token > s.token || again), standing{true, in.Owner, in.Token}
		}
		mine := s.inside && s.owner == in.Owner && s.token == in.Token
		return mine, standing{false, in.Owner, in.Token}
	},
	DescribeOperation: func(input, _ any) string {
		in := input.(step)
		return fmt.Sprintf("%s %s %d", map[bool]string{true: "enter", false: "leave"}[in.Enter], in.Lock, in.Token)
	},
	DescribeState: func(state any) string {
		s := state.(standing)
		return fmt.Sprintf("held: %v, last token %d", s.inside, s.token)
	},
}

// operations are the steps of holders. It entered between its call and the first look that found
// the lock live, and left between the last such look and the first other one.
func operations(holds []*hold) (list []porcupine.Operation) {
	rows := map[string]int{}
	for _, h := range holds {
		if _, ok := rows[h.Who]; !ok {
			rows[h.Who] = len(rows)
		}
		in := step{h.Lock, true, h.Owner, h.Token}
		list = append(list, porcupine.Operation{ClientId: rows[h.Who], Input: in,
			Call: int64(h.Start), Return: int64(max(h.Start, h.Enter)),
			Metadata: h.String()})
		in.Enter = false
		list = append(list, porcupine.Operation{ClientId: rows[h.Who], Input: in, Call: int64(h.Last),
			Return:   int64(max(h.Last, h.End)),
			Metadata: h.String() + ": " + h.Why})
	}
	return list
}

// modelTime bounds porcupine's search.
const modelTime = 30 * time.Second

// checkModel asks porcupine about all holders but those whose loss has been judged. The search may
// find no answer in time: then decided is false.
func checkModel(holds []*hold, judged map[*hold]bool) (found []violation, decided bool) {
	left := slices.DeleteFunc(slices.Clone(holds), func(h *hold) bool { return judged[h] })
	switch porcupine.CheckOperationsTimeout(model, operations(left), modelTime) {
	case porcupine.Illegal:
		return []violation{wrong("model", "", 0, "porcupine finds no order of the holders")}, true
	case porcupine.Unknown:
		return nil, false
	}
	return nil, true
}

// around is how much of a history a drawing shows before and after a violation.
const around = 3 * time.Second

// draw writes the drawing of a history around its first violation to a file.
func draw(path string, holds []*hold, v violation, faults []*fault) error {
	near := slices.DeleteFunc(slices.Clone(holds), func(h *hold) bool {
		far := h.Lock != v.Lock && v.Lock != "" || h.End < v.At.Add(-around) || h.Enter > v.At.Add(around)
		return far && v.At != 0
	})
	const most = 2000 // what a browser can draw
	near = near[:min(len(near), most)]
	if len(near) == 0 {
		return nil
	}
	begin, end := forever, stamp(0)
	for _, h := range near {
		begin, end = min(begin, h.Start), max(end, h.Last)
	}
	for i, h := range near { // those who never left would make the drawing endless
		cut := *h
		cut.End = min(h.End, end.Add(around))
		near[i] = &cut
	}
	_, info := porcupine.CheckOperationsVerbose(model, operations(near), modelTime)
	var notes []porcupine.Annotation
	for _, f := range faults {
		if f.End >= begin && f.Start <= end {
			notes = append(notes, porcupine.Annotation{Tag: "faults", Start: int64(f.Start),
				End:         int64(min(f.End, end)),
				Description: string(f.Kind), Details: f.Target + " " + f.Lock + " " + f.Detail})
		}
	}
	info.AddAnnotations(notes)
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return porcupine.Visualize(model, info, file)
}
