package main

import (
	"math"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// picture is a plot of one metric over the cases of a workload.
type picture struct {
	file, title string
	workload    string
	metric      string
	across      string // what the x axis shows
	points      []point
}

// point is a case and where it stands on the x axis.
type point struct {
	at    float64
	title string
}

func pictures() []picture {
	var clients, others []point
	for _, n := range []int{2, 8, 32, 128} {
		clients = append(clients, point{float64(n), crowd{clients: n, goroutines: 1}.String()})
	}
	for n := 1; n <= 1_000_000; n *= 10 {
		others = append(others, point{float64(n), caseOthers(n)})
	}
	return []picture{
		{"hot.svg", "One hot lock: locks per second", "hot", mRate, "clients", clients},
		{"hot-wait.svg", "One hot lock: 99th percentile of the wait, µs", "hot", mP99, "clients", clients},
		{"hot-commands.svg", "One hot lock: commands for each lock", "hot", mCommands, "clients", clients},
		{"cluster.svg", "Three primaries: locks per second beside other locks that are held", "cluster", mRate, "other locks", others},
	}
}

// plots draws what was measured.
func (r report) plots(folder string) (drawn []picture, err error) {
	for _, p := range pictures() {
		lines := r.lines(p)
		if len(lines) == 0 {
			continue
		}
		if err := p.draw(lines, filepath.Join(folder, p.file)); err != nil {
			return nil, err
		}
		drawn = append(drawn, p)
	}
	return drawn, nil
}

// line is one rival in a picture.
type line struct {
	name  string
	color int
	dots  plotter.XYs
}

// lines are the rivals with at least two points, so that those with one do not fill the legend.
func (r report) lines(p picture) (list []line) {
	for i, v := range r.rivals {
		var dots plotter.XYs
		for _, pt := range p.points {
			if y := r.results.get(p.workload, pt.title, v.Name, p.metric); y > 0 && !math.IsInf(y, 0) {
				dots = append(dots, plotter.XY{X: pt.at, Y: y})
			}
		}
		if len(dots) > 1 {
			list = append(list, line{v.Name, i, dots})
		}
	}
	return list
}

// draw writes an SVG with logarithmic axes.
func (p picture) draw(lines []line, file string) error {
	picture := plot.New()
	picture.Title.Text = p.title
	picture.X.Label.Text = p.across
	picture.X.Scale, picture.Y.Scale = plot.LogScale{}, plot.LogScale{}
	picture.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	ticks := make(plot.ConstantTicks, len(p.points))
	for i, pt := range p.points {
		ticks[i] = plot.Tick{Value: pt.at, Label: thousands(strconv.FormatFloat(pt.at, 'f', 0, 64))}
	}
	picture.X.Tick.Marker = ticks
	picture.Add(plotter.NewGrid())
	for _, l := range lines {
		drawn, dots, err := plotter.NewLinePoints(l.dots)
		if err != nil {
			return err
		}
		drawn.Color, dots.Color = plotutil.Color(l.color), plotutil.Color(l.color)
		dots.Shape = plotutil.Shape(l.color)
		if l.name == holdfastName {
			drawn.Width = vg.Points(2.5)
		}
		picture.Add(drawn, dots)
		picture.Legend.Add(l.name, drawn, dots)
	}
	picture.Legend.Top = true
	picture.X.Max *= 4 // room for the legend, on a logarithmic axis
	return picture.Save(18*vg.Centimeter, 10*vg.Centimeter, file)
}
