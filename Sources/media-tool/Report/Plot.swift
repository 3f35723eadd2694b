/// A plot over time as inline SVG, with the gaps as coloured bands behind it.
struct Plot {
    /// A band over the whole height.
    struct Band {
        let start: Double
        let duration: Double
        /// The colour's name among those of the page's style.
        let color: String
        let title: String
    }

    let title: String
    let unit: String
    let series: [PlotSeries]
    /// The length of the time axis in seconds.
    let duration: Double
    /// The width of a bar in seconds.
    var barWidth = 1.0
    /// The least that the vertical axis shows.
    var range: ClosedRange<Double>?
    /// What stays inside of the axis: outliers beyond are cut off.
    var limits: ClosedRange<Double>?
    var bands: [Band] = []

    static let width = 1000.0
    static let left = 56.0
    static let right = 24.0
    private static let height = 200.0
    static let top = 8.0
    private static let bottom = 24.0

    static var plotWidth: Double { width - left - right }
    static var plotHeight: Double { height - top - bottom }

    /// The plot as a `figure` element; nothing where there is nothing to draw.
    var html: String {
        let shown = series.filter { !$0.isEmpty }
        guard !shown.isEmpty else { return "" }
        let axis = axis
        let slot = Self.horizontal(barWidth, duration) - Self.left
        var svg =
            "<svg viewBox=\"0 0 \(Int(Self.width)) \(Int(Self.height))\" role=\"img\""
            + " aria-label=\"\(HTMLText.escaped(title))\" data-d=\"\(place(duration))\" data-lo=\"\(place(axis.low))\""
            + " data-hi=\"\(place(axis.high))\" data-w=\"\(slot)\">"
        svg += Self.field(height: Self.plotHeight)
        svg += grid(axis)
        for band in bands { svg += draw(band) }
        let barCount = shown.count { $0.style == .bars }
        var barIndex = 0
        for one in shown {
            let path: String
            switch one.style {
            case .line, .peaks: path = line(one, axis)
            case .dots: path = dots(one, axis)
            case .bars:
                path = bars(one, axis, barIndex, barCount)
                barIndex += 1
            }
            svg += "<path class=\"\(one.style)\" style=\"color:var(--\(one.color))\""
            svg += " data-n=\"\(HTMLText.escaped(one.name))\" d=\"\(path)\"/>"
        }
        svg += Self.pointer(height: Self.plotHeight) + "</svg>"
        let legend = shown.map { one in
            "<span><i style=\"background:var(--\(one.color))\"></i>\(HTMLText.escaped(one.name))</span>"
        }
        return Self.figure(title, unit, legend: legend.joined(), svg)
    }

    /// A `figure` with its caption, over which the values under the pointer are shown.
    static func figure(_ title: String, _ unit: String, legend: String, _ svg: String) -> String {
        "<figure><figcaption><b>\(HTMLText.escaped(title))</b> <small>\(HTMLText.escaped(unit))</small>"
            + legend + "</figcaption><div>\(svg)<output></output></div></figure>\n"
    }

    /// The plot's background.
    static func field(height: Double) -> String {
        "<rect class=\"field\" x=\"\(HTMLText.number(left))\" y=\"\(HTMLText.number(top))\""
            + " width=\"\(HTMLText.number(plotWidth))\" height=\"\(HTMLText.number(height))\"/>"
    }

    /// The line that follows the pointer.
    static func pointer(height: Double) -> String {
        "<line class=\"at\" x1=\"-9\" x2=\"-9\" y1=\"\(HTMLText.number(top))\" y2=\"\(HTMLText.number(top + height))\"/>"
    }

    /// Where `time` lies.
    static func horizontal(_ time: Double, _ duration: Double) -> Double {
        left + min(max(time / max(duration, 1e-9), 0), 1) * plotWidth
    }

    /// Lines and words of the time axis under a field of `height`.
    static func timeGrid(_ duration: Double, height: Double) -> String {
        var svg = ""
        let step = timeStep(duration / 10)
        var time = 0.0
        while time <= duration {
            let x = HTMLText.number(horizontal(time, duration))
            svg += "<line class=\"grid\" x1=\"\(x)\" x2=\"\(x)\" y1=\"\(HTMLText.number(top))\""
            svg += " y2=\"\(HTMLText.number(top + height))\"/>"
            svg += "<text x=\"\(x)\" y=\"\(HTMLText.number(top + height + 16))\" text-anchor=\"middle\">"
            svg += HTMLText.time(time, step: step) + "</text>"
            time += step
        }
        return svg
    }

    // MARK: Axes

    private struct Axis {
        var low: Double
        var high: Double
        var step: Double
    }

    private var axis: Axis {
        var (low, high) = range.map { ($0.lowerBound, $0.upperBound) } ?? (0, 1)
        for one in series {
            for point in one.points where point.value.isFinite {
                low = min(low, point.value)
                high = max(high, point.value)
            }
        }
        if let limits { (low, high) = (max(low, limits.lowerBound), min(high, limits.upperBound)) }
        if high <= low { high = low + 1 }
        let step = Self.niceStep((high - low) / 4)
        return Axis(low: (low / step).rounded(.down) * step, high: (high / step).rounded(.up) * step, step: step)
    }

    /// 1, 2 or 5 times a power of ten, not below `rough`.
    private static func niceStep(_ rough: Double) -> Double {
        var power = 1.0
        while power < rough { power *= 10 }
        while power / 10 >= rough, power > 1e-6 { power /= 10 }
        return [0.2, 0.5].map { $0 * power }.first { $0 >= rough } ?? power
    }

    private static func timeStep(_ rough: Double) -> Double {
        let steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400]
        return steps.first { $0 >= rough } ?? niceStep(rough)
    }

    private func grid(_ axis: Axis) -> String {
        var svg = Self.timeGrid(duration, height: Self.plotHeight)
        var value = axis.low
        while value <= axis.high + axis.step / 2 {
            let y = place(vertical(value, axis))
            svg += "<line class=\"\(abs(value) < axis.step / 100 ? "zero" : "grid")\" x1=\"\(place(Self.left))\""
            svg += " x2=\"\(place(Self.width - Self.right))\" y1=\"\(y)\" y2=\"\(y)\"/>"
            svg += "<text x=\"\(place(Self.left - 6))\" y=\"\(y)\" dy=\"4\" text-anchor=\"end\">"
            svg += HTMLText.number(value) + "</text>"
            value += axis.step
        }
        return svg
    }

    private func vertical(_ value: Double, _ axis: Axis) -> Double {
        let share = (min(max(value, axis.low), axis.high) - axis.low) / (axis.high - axis.low)
        return Self.top + (1 - share) * Self.plotHeight
    }

    private func place(_ value: Double) -> String { HTMLText.number(value) }

    private func horizontal(_ time: Double) -> Double { Self.horizontal(time, duration) }

    // MARK: Series

    private func draw(_ band: Band) -> String {
        let start = horizontal(band.start)
        // A gap of 20 ms in a call of an hour is still seen.
        let width = max(horizontal(band.start + band.duration) - start, 1.5)
        return "<rect class=\"band\" style=\"color:var(--\(band.color))\" x=\"\(place(start))\""
            + " y=\"\(place(Self.top))\" width=\"\(place(width))\" height=\"\(place(Self.plotHeight))\">"
            + "<title>\(HTMLText.escaped(band.title))</title></rect>"
    }

    private func line(_ one: PlotSeries, _ axis: Axis) -> String {
        var path = ""
        var isBroken = true
        for point in one.thinned(to: Int(Self.plotWidth), duration: duration) {
            guard point.value.isFinite else {
                isBroken = true
                continue
            }
            path += "\(isBroken ? "M" : "L")\(place(horizontal(point.time))) \(place(vertical(point.value, axis)))"
            isBroken = false
        }
        return path
    }

    private func dots(_ one: PlotSeries, _ axis: Axis) -> String {
        let points = one.thinned(to: Int(Self.plotWidth), duration: duration).filter(\.value.isFinite)
        guard one.isThinned(to: Int(Self.plotWidth)) else {
            return points.map { "M\(place(horizontal($0.time))) \(place(vertical($0.value, axis)))h0" }.joined()
        }
        var stretches: [Int: ClosedRange<Double>] = [:]
        for point in points {
            let (x, y) = (Int(horizontal(point.time)), vertical(point.value, axis))
            let known = stretches[x] ?? y...y
            stretches[x] = min(known.lowerBound, y)...max(known.upperBound, y)
        }
        return stretches.sorted { $0.key < $1.key }.map { x, range in
            "M\(x) \(place(range.lowerBound))V\(place(range.upperBound))"
        }.joined()
    }

    private func bars(_ one: PlotSeries, _ axis: Axis, _ index: Int, _ count: Int) -> String {
        let zero = vertical(0, axis)
        var path = ""
        for point in one.points where point.value.isFinite {
            let start = horizontal(point.time)
            let slot = max(horizontal(point.time + barWidth) - start, 1) / Double(count)
            let x = start + Double(index) * slot
            let y = vertical(point.value, axis)
            path += "M\(place(x)) \(place(zero))V\(place(y))h\(place(max(slot * 0.9, 0.6)))V\(place(zero))z"
        }
        return path
    }
}
