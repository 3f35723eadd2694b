internal import CallBasics

extension [ServiceRecord] {
    /// The records in the order in which they are to be tried: by priority, and within one at random by weight.
    ///
    /// Source: RFC 2782, "Weight"
    func ordered(by generator: inout SeededGenerator) -> [ServiceRecord] {
        var ordered: [ServiceRecord] = []
        for priority in Set(map(\.priority)).sorted() {
            // Those without weight stand first: drawn by 0 alone, they have a very small chance beside others.
            let group = filter { $0.priority == priority }
            var left = group.filter { $0.weight == 0 }.shuffled(using: &generator) + group.filter { $0.weight > 0 }
            while !left.isEmpty {
                let sum = left.reduce(0) { $0 + Int($1.weight) }
                let drawn = Int.random(in: 0...(sum * stepsPerWeight), using: &generator)
                var running = 0
                let index =
                    left.firstIndex { record in
                        running += Int(record.weight) * stepsPerWeight
                        return running >= drawn
                    } ?? left.startIndex
                ordered.append(left.remove(at: index))
            }
        }
        return ordered
    }
}

/// In how fine steps is drawn, so that 0, which is drawn too, takes little from the others.
private let stepsPerWeight = 256
