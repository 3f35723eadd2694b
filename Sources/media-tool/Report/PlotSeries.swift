/// One line, cloud of dots or row of bars in a plot.
struct PlotSeries {
    /// How the points are drawn.
    enum Style {
        /// Points joined by a line.
        case line
        /// Points alone.
        case dots
        /// Bars from zero, each as wide as its share of the time, those of several series side by side.
        case bars
    }

    /// A value at a time.
    struct Point {
        /// Seconds after the beginning.
        var time: Double
        /// The value; what is not finite is a break in the line.
        var value: Double
    }

    /// The name in the legend.
    let name: String
    /// The colour, as CSS has it.
    let color: String
    /// How it is drawn.
    let style: Style
    /// The points, in the order of time.
    let points: [Point]

    /// The points that are drawn: of very many, the lowest and highest of each of `count` stretches.
    func thinned(to count: Int) -> [Point] {
        guard points.count > 2 * count, let first = points.first, let last = points.last else { return points }
        let width = max((last.time - first.time) / Double(count), 1e-9)
        var result: [Point] = []
        var stretch: [Point] = []
        var number = 0
        func close() {
            let finite = stretch.filter(\.value.isFinite)
            guard let low = finite.min(by: { $0.value < $1.value }), let high = finite.max(by: { $0.value < $1.value })
            else {
                if let broken = stretch.first { result.append(broken) }
                return
            }
            result += low.time < high.time ? [low, high] : low.time > high.time ? [high, low] : [low]
        }
        for point in points {
            let own = Int((point.time - first.time) / width)
            if own != number {
                close()
                stretch = []
                number = own
            }
            stretch.append(point)
        }
        close()
        return result
    }

    /// Sums over stretches of `width` seconds, zeros left out: what bars are made of.
    static func sums(_ points: some Sequence<Point>, width: Double) -> [Point] {
        var sums: [Int: Double] = [:]
        for point in points where point.value.isFinite && point.value != 0 {
            sums[Int(point.time / width), default: 0] += point.value
        }
        return sums.sorted { $0.key < $1.key }.map { Point(time: Double($0.key) * width, value: $0.value) }
    }
}
