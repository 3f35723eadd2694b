/// A plot over time as inline SVG, with the gaps as coloured bands behind it.
struct Plot {
    /// A band over the whole height.
    struct Band {
        let start: Double
        let duration: Double
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

    private static let width = 1000.0
    private static let height = 200.0
    private static let left = 56.0
    private static let right = 12.0
    private static let top = 8.0
    private static let bottom = 24.0

    private var plotWidth: Double { Self.width - Self.left - Self.right }
    private var plotHeight: Double { Self.height - Self.top - Self.bottom }

    /// The plot as a `figure` element.
    var html: String {
        let axis = axis
        var svg =
            "<svg viewBox=\"0 0 \(Int(Self.width)) \(Int(Self.height))\" role=\"img\" aria-label=\"\(HTMLText.escaped(title))\">"
        svg +=
            "<rect class=\"field\" x=\"\(place(Self.left))\" y=\"\(place(Self.top))\" width=\"\(place(plotWidth))\" height=\"\(place(plotHeight))\"/>"
        svg += grid(axis)
        for band in bands { svg += draw(band) }
        let barCount = series.count { $0.style == .bars }
        var barIndex = 0
        for one in series {
            switch one.style {
            case .line: svg += line(one, axis)
            case .dots: svg += dots(one, axis)
            case .bars:
                svg += bars(one, axis, barIndex, barCount)
                barIndex += 1
            }
        }
        svg += "</svg>"
        let legend = series.map { one in
            "<span><i style=\"background:\(one.color)\"></i>\(HTMLText.escaped(one.name))</span>"
        }
        return "<figure><figcaption><b>\(HTMLText.escaped(title))</b> <small>\(HTMLText.escaped(unit))</small>"
            + legend.joined() + "</figcaption>\(svg)</figure>\n"
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
        var svg = ""
        var value = axis.low
        while value <= axis.high + axis.step / 2 {
            let y = place(vertical(value, axis))
            svg +=
                "<line class=\"\(abs(value) < axis.step / 100 ? "zero" : "grid")\" x1=\"\(place(Self.left))\" x2=\"\(place(Self.width - Self.right))\" y1=\"\(y)\" y2=\"\(y)\"/>"
            svg +=
                "<text x=\"\(place(Self.left - 6))\" y=\"\(y)\" dy=\"4\" text-anchor=\"end\">\(HTMLText.number(value))</text>"
            value += axis.step
        }
        let step = Self.timeStep(duration / 10)
        var time = 0.0
        while time <= duration {
            let x = place(horizontal(time))
            svg +=
                "<line class=\"grid\" x1=\"\(x)\" x2=\"\(x)\" y1=\"\(place(Self.top))\" y2=\"\(place(Self.height - Self.bottom))\"/>"
            svg +=
                "<text x=\"\(x)\" y=\"\(place(Self.height - 8))\" text-anchor=\"middle\">\(HTMLText.time(time))</text>"
            time += step
        }
        return svg
    }

    private func horizontal(_ time: Double) -> Double {
        Self.left + min(max(time / max(duration, 1e-9), 0), 1) * plotWidth
    }

    private func vertical(_ value: Double, _ axis: Axis) -> Double {
        let share = (min(max(value, axis.low), axis.high) - axis.low) / (axis.high - axis.low)
        return Self.top + (1 - share) * plotHeight
    }

    private func place(_ value: Double) -> String { HTMLText.number(value) }

    // MARK: Series

    private func draw(_ band: Band) -> String {
        let start = horizontal(band.start)
        // A gap of 20 ms in a call of an hour is still seen.
        let width = max(horizontal(band.start + band.duration) - start, 1.5)
        return
            "<rect fill=\"\(band.color)\" opacity=\"0.35\" x=\"\(place(start))\" y=\"\(place(Self.top))\" width=\"\(place(width))\" height=\"\(place(plotHeight))\"><title>\(HTMLText.escaped(band.title))</title></rect>"
    }

    private func line(_ one: PlotSeries, _ axis: Axis) -> String {
        var path = ""
        var isBroken = true
        for point in one.thinned(to: Int(plotWidth)) {
            guard point.value.isFinite else {
                isBroken = true
                continue
            }
            path += "\(isBroken ? "M" : "L")\(place(horizontal(point.time))) \(place(vertical(point.value, axis)))"
            isBroken = false
        }
        return path.isEmpty ? "" : "<path d=\"\(path)\" fill=\"none\" stroke=\"\(one.color)\" stroke-width=\"1.4\"/>"
    }

    private func dots(_ one: PlotSeries, _ axis: Axis) -> String {
        let path = one.thinned(to: Int(plotWidth)).filter(\.value.isFinite).map { point in
            "M\(place(horizontal(point.time))) \(place(vertical(point.value, axis)))h0"
        }
        return path.isEmpty
            ? ""
            : "<path d=\"\(path.joined())\" stroke=\"\(one.color)\" stroke-width=\"2.4\" stroke-linecap=\"round\"/>"
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
        return path.isEmpty ? "" : "<path d=\"\(path)\" fill=\"\(one.color)\"/>"
    }
}
