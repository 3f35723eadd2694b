/// One line, cloud of dots or row of bars in a plot.
struct PlotSeries {
    /// How the points are drawn.
    enum Style {
        /// Points joined by a line.
        case line
        /// Points alone; of very many, lines from the lowest to the highest of each stretch.
        case dots
        /// Points joined by a line; of very many, the highest of each stretch.
        case peaks
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
    /// The colour's name among those of the page's style.
    let color: String
    /// How it is drawn.
    let style: Style
    /// The points, in the order of time.
    let points: [Point]

    /// Whether there is anything to draw: a value, of bars one that is not zero.
    var isEmpty: Bool { !points.contains { $0.value.isFinite && (style != .bars || $0.value != 0) } }

    /// Whether there are so many points that they are thinned to `count` stretches.
    func isThinned(to count: Int) -> Bool { points.count > 2 * count }

    /// The points that are drawn: of very many, the lowest and highest of each of `count` stretches of `duration` seconds,
    /// whatever times the points have.
    func thinned(to count: Int, duration: Double) -> [Point] {
        guard isThinned(to: count), count > 0, duration > 0 else { return points }
        var stretches = [(low: Point, high: Point)?](repeating: nil, count: count)
        for point in points {
            let index = min(max(Int(min(max(point.time / duration, 0), 1) * Double(count)), 0), count - 1)
            guard let known = stretches[index], known.low.value.isFinite else {
                stretches[index] = (point, point)
                continue
            }
            if point.value < known.low.value { stretches[index]?.low = point }
            if point.value > known.high.value { stretches[index]?.high = point }
        }
        return stretches.flatMap { stretch -> [Point] in
            guard let (low, high) = stretch else { return [] }
            if style == .peaks || low.time == high.time { return [high] }
            return low.time < high.time ? [low, high] : [high, low]
        }
    }

    /// Sums over stretches of `width` seconds, zeros and less left out: what bars are made of.
    static func sums(_ points: some Sequence<Point>, width: Double) -> [Point] {
        var sums: [Int: Double] = [:]
        for point in points where point.value.isFinite && point.value != 0 {
            sums[Int(min(max(point.time / width, 0), 1e6)), default: 0] += point.value
        }
        return sums.sorted { $0.key < $1.key }.map { Point(time: Double($0.key) * width, value: $0.value) }
    }
}
