import MediaEngine

/// Traces as one HTML page that needs nothing else: for each direction the verdict, why it was choppy, plots and figures.
struct ReportPage {
    /// What the page is about: a file's name.
    let title: String
    /// The directions of the call, one or two.
    let legs: [ReportLeg]

    /// The page.
    var html: String {
        let body = legs.enumerated().map { $1.html(heading: $0 == 0 ? "h1" : "h2", file: $0 == 0 ? title : nil) }
        return HTMLPage(title: "\(title): call report", body: body.joined(), script: ReportStyle.script).html
    }
}
