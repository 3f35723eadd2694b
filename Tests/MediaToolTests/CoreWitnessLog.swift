/// What the cores of a group noted when they began and ended (`SHARED_CORE_WITNESS`), and whether two ran at once.
///
/// The benchmarks have this file, too: a link leads here.
struct CoreWitnessLog {
    /// A core, from its first note to its second, or to the death of its process.
    struct Core {
        let process: Int32
        let epoch: Int64
        /// Units: nanoseconds of the monotonic clock.
        let begin: Int64
        /// Before this it did not end; nil for one that ended in no way that is known.
        let end: Int64?
    }

    /// The cores in the order in which they began.
    let cores: [Core]

    /// The cores of which a file tells; nil when a line is torn.
    ///
    /// - Parameters:
    ///   - text: What the cores wrote.
    ///   - deaths: When the killed processes were sent the signal: they ran until then, and a moment longer.
    init?(_ text: String, deaths: [Int32: Int64]) {
        var cores: [Core] = []
        var ends: [Int64: Int64] = [:]
        for line in text.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count == 4, let process = Int32(fields[1]), let epoch = Int64(fields[2]),
                let time = Int64(fields[3])
            else { return nil }
            switch fields[0] {
            case "B": cores.append(Core(process: process, epoch: epoch, begin: time, end: nil))
            case "E": ends[epoch] = time
            default: return nil
            }
        }
        self.cores = cores.map { core in
            // One may begin between the killer's look at the clock and its signal.
            let death = deaths[core.process].map { max($0, core.begin) }
            return Core(process: core.process, epoch: core.epoch, begin: core.begin, end: ends[core.epoch] ?? death)
        }
    }

    /// The most cores that ran at the same time.
    var mostAtOnce: Int {
        cores.map { core in cores.count { $0.begin <= core.begin && $0.end ?? .max > core.begin } }.max() ?? 0
    }

    /// Whether each core began a later epoch than the one before.
    var doEpochsRise: Bool {
        zip(cores, cores.dropFirst()).allSatisfy { $0.epoch < $1.epoch && $0.begin < $1.begin }
    }
}
